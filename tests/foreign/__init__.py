"""Material that nobody here wrote, against our readers and writers: fetched by version and digest, never copied in."""
