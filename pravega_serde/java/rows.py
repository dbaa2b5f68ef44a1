"""Row reader: reads one event with one loop, without recursion. Only the bytes in the event are trusted.

Objects inside objects are kept on a stack of frames. A frame collects the values of one part of an object (the object
fields of one class, the annotations of one class, the elements of an array). When the part is complete, the next part
begins. The last part completes the object, which then is a value of the frame below.
"""

from __future__ import annotations

import contextlib
import struct
from collections.abc import Iterator, Sequence
from typing import Any, Final

from pravega_serde.columnar import MalformedError
from pravega_serde.errors import DeserializationError, LimitExceededError
from pravega_serde.java.descriptors import (
    UNRESOLVED,
    Layouts,
    Plan,
    ReadState,
    compile_plan,
    read_descriptor,
    read_string,
    special_plan,
)
from pravega_serde.java.jdk import codec_of
from pravega_serde.java.model import (
    NOT_WRITTEN,
    BlockData,
    ClassDescriptor,
    Instance,
    JavaClass,
    JavaEnum,
    JavaObject,
    OwnOrder,
)
from pravega_serde.java.protocol import (
    BASE_HANDLE,
    MAX_BLOCK,
    STREAM_HEADER,
    TC_ARRAY,
    TC_BLOCKDATA,
    TC_BLOCKDATALONG,
    TC_CLASS,
    TC_CLASSDESC,
    TC_ENDBLOCKDATA,
    TC_ENUM,
    TC_EXCEPTION,
    TC_LONGSTRING,
    TC_NULL,
    TC_OBJECT,
    TC_PROXYCLASSDESC,
    TC_REFERENCE,
    TC_RESET,
    TC_STRING,
    decode_utf,
    read_primitives,
)
from pravega_serde.java.values import ByteArray, JavaArray, String

_NO_FIELDS: Final[list[Any]] = []
"""Marker in :attr:`_Frame.ahead` for a class that did not write its fields."""


class _Frame:
    """Object, array or run of annotations that is being read."""

    __slots__ = ("ahead", "handle", "items", "need", "notes", "plan", "shell", "step", "values")

    def __init__(self, plan: Plan | None, handle: int, shell: Any, items: list[Any], need: int) -> None:
        self.plan = plan
        self.handle = handle
        self.shell = shell
        self.items = items
        """List that receives the next values: ``values``, or annotations."""
        self.need = need
        """Number of remaining values, or _UNLIMITED up to an end mark."""
        self.values = items
        self.notes: list[tuple[Any, ...]] = []
        self.step = 0
        self.ahead: list[Any] | None = None
        """Contents before the fields of the current class."""


_MAX_ANNOTATION_NESTING: Final = 4
"""Maximum nested class annotations. ``ObjectOutputStream`` writes none, and RMI writes one string."""

_LONGEST: Final = 12
"""Shown parts of a path. The middle of a longer path becomes an ellipsis."""


def _path_of(stack: Sequence[_Frame]) -> str:
    """Return the path of the value for which the innermost frame waits: ``$.lines[3].price``."""
    parts = [_part(frame) for frame in stack if frame.plan is not None or frame.handle >= 0]
    if len(parts) > _LONGEST:
        parts = [*parts[: _LONGEST // 2], "…", *parts[-_LONGEST // 2 :]]
    return "$" + "".join(parts)


def _part(frame: Any) -> str:
    if frame.plan is None:
        return f"[{len(frame.items)}]"
    if frame.items is not frame.values:
        return f"<{len(frame.items)}>"
    names = frame.plan.descriptor.field_names
    at = len(frame.values)
    return f".{names[at]}" if at < len(names) else ""


_UNEXPECTED: Final = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError, struct.error)
"""Exceptions that malformed bytes can cause, mostly short reads."""

_LONGEST_REASON: Final = 300
"""Maximum characters of a reason, because names in a stream may be 64 KiB long."""

_NO_OBJECT: Final = frozenset((TC_BLOCKDATA, TC_BLOCKDATALONG, TC_ENDBLOCKDATA))
"""Tokens that cannot begin an object."""

_TRIES: Final = 3
"""Number of classes to leave out, one at a time, if an event cannot be read with their fields."""

_UNLIMITED: Final = -1
"""Value of ``need`` for a frame that ends at TC_ENDBLOCKDATA, not after a number of values."""


class Reader(ReadState):
    """Reader of one event, or of a stream of several objects."""

    __slots__ = ()

    def read_event(self) -> Any:
        """Return the object of an event. Bytes after it are ignored, as in Java's deserializer.

        A class's ``writeObject`` may leave ``defaultWriteObject`` out, and the stream does not show that. If an event
        cannot be read with the fields of such classes, it is read without them.

        Raises :class:`DeserializationError`, which includes :class:`LimitExceededError`.
        """
        try:
            return self._read_event()
        except LimitExceededError:
            raise
        except DeserializationError:
            for layouts in self._others():
                with contextlib.suppress(DeserializationError):
                    other = Reader(self.data, self.cache, self.limits, layouts)
                    value = other._read_event()
                    self.handles = other.handles
                    return value
            raise

    def _others(self) -> Iterator[Layouts]:
        """Yield other layouts of the event: without the fields of one class, the last first, and of all."""
        known = self.layouts or {}
        doubtful = [name for name in reversed(self.doubtful) if name not in known]
        for name in doubtful[:_TRIES]:
            yield {**known, name: None}
        if len(doubtful) > 1:
            yield {**known, **dict.fromkeys(doubtful)}

    def _read_event(self) -> Any:
        items: list[Any] = []
        self._run(len(STREAM_HEADER), _Frame(None, -1, None, items, 1))
        if isinstance(items[0], BlockData):
            msg = "the stream begins with primitive data, not with an object"
            raise DeserializationError(msg)
        return items[0]

    def read_stream(self) -> list[Any]:
        """Return the contents of a stream: objects, and the :class:`BlockData` between them."""
        items: list[Any] = []
        pos = len(STREAM_HEADER)
        while pos < self.size:
            pos = self._run(pos, _Frame(None, -1, None, items, 1))
        return items

    def read_annotation(self, pos: int) -> tuple[tuple[Any, ...], int]:
        """Return the contents up to the end mark, and the position after it."""
        if self.nesting >= _MAX_ANNOTATION_NESTING:
            msg = f"class annotations nested more than {_MAX_ANNOTATION_NESTING} levels deep"
            raise LimitExceededError(msg)
        self.nesting += 1
        frame = _Frame(None, -1, None, [], _UNLIMITED)
        pos = self._run(pos, frame)
        self.nesting -= 1
        return tuple(frame.items), pos

    def _run(self, pos: int, root: _Frame) -> int:
        """Read until ``root`` is complete. Return the position after it."""
        stack = [root]
        try:
            return self._loop(pos, stack)
        except DeserializationError as error:
            if error.field_path is None:
                raise type(error)(error.reason, field_path=_path_of(stack)) from error
            raise
        except _UNEXPECTED as error:
            raise DeserializationError(_reason(error, self.size), field_path=_path_of(stack)) from error

    def _loop(self, pos: int, stack: list[_Frame]) -> int:  # noqa: PLR0912, PLR0915
        # One loop with all state in local variables, because it runs for each value of each event. The tokens are the
        # TC_ constants of the protocol, section 6.4.2, the most frequent ones first. _other has the rest.
        data, size, handles, max_depth = self.data, self.size, self.handles, self.limits.depth
        frame = stack[-1]
        items, need = frame.items, frame.need
        while True:
            token = data[pos]
            if token == TC_STRING:
                # newString: two bytes of length, then modified UTF-8. A string has a handle.
                end = pos + 3 + (data[pos + 1] << 8 | data[pos + 2])
                raw = data[pos + 3 : end]
                if end > size:
                    raise self._cut(pos)
                value: Any = raw.decode("ascii") if raw.isascii() else decode_utf(raw)
                if len(value) < 2:
                    value = self.unique(value, String)
                handles.append(value)
                pos = end
            elif token == TC_REFERENCE:
                # prevObject: four bytes of handle. A negative handle becomes a huge number, a truncated one a small
                # number. Both are checked.
                at = int.from_bytes(data[pos + 1 : pos + 5], "big") - BASE_HANDLE
                if not 0 <= at < len(handles) or pos + 5 > size:
                    msg = f"reference to handle {at} at byte {pos}, of {len(handles)} so far"
                    raise MalformedError(msg)
                value = handles[at]
                if value is UNRESOLVED:
                    msg = f"reference at byte {pos} to an object that is not complete"
                    raise MalformedError(msg)
                pos += 5
            elif token == TC_NULL:
                value = None
                pos += 1
            elif token == TC_OBJECT:
                new, pos = self._object(pos + 1)
                if new.need:
                    # The object has inner values. The frame below keeps its remaining need, and waits.
                    frame.need = need
                    stack.append(new)
                    if len(stack) > max_depth:
                        raise self._too_deep(pos)
                    frame, items, need = new, new.items, new.need
                    continue
                value = self._finish(new)
            elif token == TC_ARRAY:
                value, pos = self._array(pos + 1)
                if type(value) is _Frame:
                    frame.need = need
                    stack.append(value)
                    if len(stack) > max_depth:
                        raise self._too_deep(pos)
                    frame, items, need = value, value.items, value.need
                    continue
            elif token == TC_ENDBLOCKDATA:
                if need >= 0:
                    msg = f"end of annotations at byte {pos} instead of a value"
                    raise MalformedError(msg)
                pos += 1
                # endBlockData. Tuples, because the empty tuple is one shared object. A byte of input must not become a
                # separate list.
                frame.notes.append(tuple(items) if frame.ahead is None else _own_order(frame, items))
                pos = self._segment(frame, pos)
                if frame.need:
                    items, need = frame.items, frame.need
                    continue
                if len(stack) == 1:
                    return pos
                stack.pop()
                value = self._finish(frame)
                frame = stack[-1]
                items, need = frame.items, frame.need
            else:
                block = token in (TC_BLOCKDATA, TC_BLOCKDATALONG)
                if block and need > 0 and frame.plan is not None and items is frame.values:
                    msg = f"primitive data at byte {pos} instead of a value"
                    raise MalformedError(msg)
                value, pos = self._other(token, pos, len(stack))
            items.append(value)
            need -= 1
            # One value may complete an object, which may complete the one around it, and so on down the stack.
            while need == 0:
                pos = self._segment(frame, pos)
                if frame.need:
                    items, need = frame.items, frame.need
                    break
                if len(stack) == 1:
                    return pos
                stack.pop()
                value = self._finish(frame)
                frame = stack[-1]
                items = frame.items
                items.append(value)
                need = frame.need - 1

    def _object(self, pos: int) -> tuple[_Frame, int]:
        """Begin an object (``newObject``): its class, its handle, and its shell if inner objects may refer to it.

        A frame with a ``need`` of 0 is complete.
        """
        descriptor, pos = read_descriptor(self, pos)
        if descriptor is None:
            msg = f"an object without a class at byte {pos - 1}"
            raise MalformedError(msg)
        plan = descriptor.__dict__.get("_plan") or compile_plan(descriptor, codec_of)
        if plan.doubtful:
            self.doubtful.update(dict.fromkeys(plan.doubtful))
            if self.layouts:
                plan = special_plan(plan, self.layouts)
        handle = self.reserve()
        # The leading primitive fields are read first, because a HashMap's load factor determines its shell.
        frame = _Frame(plan, handle, None, [], 0)
        pos = self._segment(frame, pos)
        if plan.codec is None:
            frame.shell = self.handles[handle] = JavaObject(descriptor)
        elif plan.codec.shell is not None:
            frame.shell = self.handles[handle] = plan.codec.shell(plan.descriptor, frame.values)
        return frame, pos

    def _segment(self, frame: _Frame, pos: int) -> int:
        """Begin the next part of an object that needs values from the loop. ``need`` stays 0 after the last part."""
        frame.need = 0
        if frame.plan is None:
            return pos
        steps = frame.plan.steps
        while frame.step < len(steps):
            step = steps[frame.step]
            frame.step += 1
            if step.annotated:
                frame.items, frame.need = [], _UNLIMITED
                if step.absent:
                    _leave_out(frame, step.absent)
                return pos
            if step.ahead:
                frame.items = frame.ahead = []
                frame.need = step.ahead
                return pos
            if step.telling and frame.ahead is None and self.data[pos] in _NO_OBJECT and frame.plan.codec is None:
                _leave_out(frame, step.objects)
                continue
            if step.unpack is not None:
                unpacked = step.unpack(self.data, pos)
                for at in step.chars:
                    unpacked = (*unpacked[:at], chr(unpacked[at]), *unpacked[at + 1 :])
                frame.values.extend(unpacked)
                pos += step.size
            if step.objects:
                frame.items, frame.need = frame.values, step.objects
                return pos
        return pos

    def _finish(self, frame: _Frame) -> Any:
        """Create the value of a complete object or array."""
        plan, shell = frame.plan, frame.shell
        if plan is None:
            shell.extend(frame.values)
            return shell
        if plan.codec is not None:
            value = plan.codec.read(shell, frame.values, frame.notes, self)
            if value is NotImplemented:
                value = JavaObject(plan.descriptor, frame.values, frame.notes)
            self.handles[frame.handle] = value
            return value
        assert isinstance(shell, Instance)
        shell.data = frame.values
        shell.annotations = tuple(frame.notes)
        return shell

    def _array(self, pos: int) -> tuple[Any, int]:
        """Read an array of primitives, or begin the frame of an array of objects (``newArray``)."""
        descriptor, pos = read_descriptor(self, pos)
        if not isinstance(descriptor, ClassDescriptor) or not descriptor.name.startswith("["):
            msg = f"invalid class of an array: {descriptor.name if descriptor else None}, at byte {pos}"
            raise MalformedError(msg)
        handle = self.reserve()
        count = int.from_bytes(self.data[pos : pos + 4], "big")
        pos += 4
        # An element has at least a byte. A larger length is forged, or the event is truncated.
        if count > self.size - pos:
            raise self._cut(pos)
        # The name "[" falls through to the primitives, which reject it.
        if descriptor.name[1:2] and descriptor.name[1] in "L[":
            array = JavaArray((), descriptor)
            self.handles[handle] = array
            return (_Frame(None, handle, array, [], count) if count else array), pos
        value, pos = read_primitives(descriptor.name, self.data, pos, count)
        # CPython has one empty bytes object, and one for each byte. See unique.
        if len(value) < 2 and type(value) is bytes:
            value = self.unique(value, ByteArray)
        self.handles[handle] = value
        return value, pos

    def _other(self, token: int, pos: int, depth: int) -> tuple[Any, int]:
        """Read a value of one of the less frequent kinds of content."""
        if token == TC_ENUM:
            return self._enum(pos + 1)
        if token in (TC_BLOCKDATA, TC_BLOCKDATALONG):
            return self._block(pos)
        if token == TC_LONGSTRING:
            text, pos = read_string(self.data, pos)
            self.handles.append(text)
            return text, pos
        if token == TC_CLASS:
            descriptor, pos = read_descriptor(self, pos + 1)
            if descriptor is None:
                msg = f"null instead of a class at byte {pos - 1}"
                raise MalformedError(msg)
            value = JavaClass(descriptor)
            self.handles[self.reserve()] = value
            return value, pos
        if token in (TC_CLASSDESC, TC_PROXYCLASSDESC):
            return read_descriptor(self, pos)
        if token == TC_RESET and depth == 1 and self.nesting == 0:
            self._reset()
            return self._one(pos + 1)
        if token == TC_EXCEPTION:
            self._reset()
            raise self._aborted(pos)
        msg = f"unexpected byte {token:#04x} at byte {pos}"
        raise MalformedError(msg)

    def _one(self, pos: int) -> tuple[Any, int]:
        while pos < self.size and self.data[pos] == TC_RESET:
            pos += 1
        frame = _Frame(None, -1, None, [], 1)
        pos = self._loop(pos, [frame])
        return frame.values[0], pos

    def _reset(self) -> None:
        self.handles.clear()
        self.singles.clear()

    def _aborted(self, pos: int) -> DeserializationError:
        """Return the error of an event with a writer's exception in it (``exception`` of the grammar).

        The writer failed during the event. Java's reader raises a ``WriteAbortedException``.
        """
        self.nesting += 1
        if self.nesting > _MAX_ANNOTATION_NESTING:
            msg = f"exceptions of the writer nested more than {_MAX_ANNOTATION_NESTING} levels deep at byte {pos}"
            raise MalformedError(msg)
        thrown, _ = self._one(pos + 1)
        # The rest cannot be trusted, because the handles were reset before and after the exception.
        text = thrown.field("detailMessage") if isinstance(thrown, Instance) else None
        kind = thrown.class_name if isinstance(thrown, Instance) else type(thrown).__name__
        return DeserializationError(f"the Java writer failed while it wrote this event: {kind}: {text}")

    def _enum(self, pos: int) -> tuple[JavaEnum, int]:
        descriptor, pos = read_descriptor(self, pos)
        if not isinstance(descriptor, ClassDescriptor) or not descriptor.is_enum:
            msg = f"invalid class of an enum constant at byte {pos}"
            raise MalformedError(msg)
        handle = self.reserve()
        if self.data[pos] == TC_REFERENCE:
            at = int.from_bytes(self.data[pos + 1 : pos + 5], "big") - BASE_HANDLE
            name = self.handles[at] if 0 <= at < len(self.handles) else None
            pos += 5
        else:
            name, pos = read_string(self.data, pos)
            self.handles.append(name)
        if not isinstance(name, str) or pos > self.size:
            msg = f"invalid name of an enum constant at byte {pos}"
            raise MalformedError(msg)
        # The name has the handle after the constant's own, as in ObjectOutputStream.writeEnum.
        value = self.handles[handle] = JavaEnum(descriptor, name)
        return value, pos

    def _block(self, pos: int) -> tuple[BlockData, int]:
        """Read block data. A full block is joined with the next one.

        Java splits block data only for its size (``MAX_BLOCK_SIZE``).
        """
        data, parts = self.data, []
        while True:
            if data[pos] == TC_BLOCKDATA:
                length, pos = data[pos + 1], pos + 2
            else:
                length, pos = int.from_bytes(data[pos + 1 : pos + 5], "big"), pos + 5
            if length > self.size - pos:
                raise self._cut(pos)
            parts.append(data[pos : pos + length])
            pos += length
            if length != MAX_BLOCK or pos >= self.size or data[pos] not in (TC_BLOCKDATA, TC_BLOCKDATALONG):
                return BlockData(b"".join(parts)), pos

    def _cut(self, pos: int) -> MalformedError:
        return MalformedError(f"the bytes end inside a value that begins near byte {pos} of {self.size}")

    def _too_deep(self, pos: int) -> LimitExceededError:
        return LimitExceededError(f"objects nested more than {self.limits.depth} levels deep at byte {pos}")


def _leave_out(frame: _Frame, fields: int) -> None:
    """Mark the fields of the current class as not written."""
    frame.values.extend([NOT_WRITTEN] * fields)
    frame.ahead = _NO_FIELDS


def _own_order(frame: _Frame, items: list[Any]) -> OwnOrder:
    ahead, frame.ahead = frame.ahead, None
    assert ahead is not None
    return OwnOrder(items, None) if ahead is _NO_FIELDS else OwnOrder((*ahead, *items), len(ahead))


def _reason(error: Exception, size: int) -> str:
    if isinstance(error, MalformedError):
        detail = error.reason[:_LONGEST_REASON]
    elif isinstance(error, (IndexError, struct.error)):
        detail = f"the bytes end inside a value: the event has {size}"
    else:
        detail = f"{type(error).__name__}: {error}"[:_LONGEST_REASON]
    return f"invalid Java object stream: {detail}"
