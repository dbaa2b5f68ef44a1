"""A group in memory: its log, the controller's answers, and readers that are driven by a clock of the test's own."""

from pravega_connector.reader_groups.protocol.machine import Now, Phase, Reader, Succession
from pravega_connector.reader_groups.protocol.state import Bound, GroupConfig, KeyRange, Ranged, Segment, state_of
from pravega_connector.reader_groups.protocol.updates import apply
from pravega_connector.wire import StreamName

STREAM = StreamName("a", "b")


def segment(number, epoch=0):
    return Segment(STREAM, epoch << 32 | number)


class Group:
    """State that all processes share; ``entries`` are the updates in the order of the log, an entry a list.

    Without automatic checkpoints, unless the test asks for them.
    """

    def __init__(self, segments=4, *, end=(), checkpoint_ms=-1, **settings):
        self.config = GroupConfig(start={STREAM: Bound()}, generation=0, checkpoint_ms=checkpoint_ms, **settings)
        self.state = state_of(self.config, Ranged.of({segment(n): 0 for n in range(segments)}), dict(end))
        self.entries = []
        self.successors = {}
        self.published = []
        self.controller = None  # what it answers when it is asked for the configuration
        self.now = 100.0
        self.names = iter(f"checkpoint-{number}" for number in range(1000))

    def write(self, *updates):
        for update in updates:
            self.state = apply(self.state, update)
        self.entries.append(list(updates))

    def kinds(self, since=0):
        return [[type(update).__name__ for update in entry] for entry in self.entries[since:]]

    def member(self, name, **options):
        return Member(self, name, **options)

    def members(self, *names):
        return [self.member(name) for name in names]

    def seal(self, number, *successors, predecessors=None):
        """Segment ``number`` is followed by these numbers of the next epoch."""
        after = {segment(n, 1): tuple(predecessors or (number,)) for n in successors}
        self.successors[segment(number)] = Succession(after, {s: KeyRange(0.0, 1.0) for s in after})


class Member:
    """A process with a reader, and the state as it was when the process looked last."""

    def __init__(self, group, name, **options):
        self.group, self.asked = group, []
        self.reader = Reader.join(name, self.now, new_name=lambda: next(group.names), **options)
        self.seen, self.before_write = group.state, []
        self._run()

    @property
    def now(self):
        return Now(self.group.now, 1_000_000)

    @property
    def phase(self):
        return self.reader.phase

    @property
    def reading(self):
        return {s.id & 0xFFFFFFFF: at for s, at in self.reader.reading.items()}

    def turn(self, seconds=0.0):
        """A turn, this many seconds later; what it asked."""
        self.group.now += seconds
        self.asked = []
        self.reader = self.reader.turn(self.seen, self.now)
        return self._run()

    def leave(self, position=None):
        self.reader = self.reader.leave(position)
        return self._run()

    def hand_out(self, number, offset, epoch=0):
        self.reader = self.reader.delivered_up_to(segment(number, epoch), offset)

    def end(self, number, *, sealed=True):
        self.reader = self.reader.ended(segment(number), sealed=sealed)

    def _run(self):
        while not self.reader.is_idle:
            request = self.reader.request(self.now)
            self.asked.append(self.reader.phase)
            answer = getattr(self, f"_{request.ask.name.lower()}")(request)
            self.reader = self.reader.answered(answer, self.seen, self.now)
        return self.asked

    def _fetch(self, request):
        self.seen = self.group.state

    def _update(self, request):
        for happens in self.before_write:
            happens()
        self.before_write = []
        while updates := request.decide(self.seen):
            if self.seen is self.group.state:
                self.group.write(*updates)
                self.seen = self.group.state
                return
            self.seen = self.group.state

    def _write(self, request):
        self.group.write(*request.updates)

    def _config(self, request):
        return self.group.controller

    def _successors(self, request):
        return self.group.successors.get(request.segment, Succession())

    def _publish(self, request):
        self.group.published.append(request.cuts)


__all__ = ["STREAM", "Group", "Member", "Phase", "segment"]
