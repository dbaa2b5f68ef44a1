"""Events that could not be decoded, with where they were and why, in a stream or in files, each once."""

from connector.deadletters._boxes import FileLetters, LetterBox, StreamLetters
from connector.deadletters._letters import LETTER_SCHEMA, SliceReading, letters_of

__all__ = ["LETTER_SCHEMA", "FileLetters", "LetterBox", "SliceReading", "StreamLetters", "letters_of"]
