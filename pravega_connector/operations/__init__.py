"""Operations on streams that users run: ingestion, mirrors, export, pipes, monitoring, and the command line.

Nothing in the client or in Spark's source and sink imports this room.
"""
