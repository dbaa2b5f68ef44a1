"""Material of other projects, against our readers and writers: fetched by version and digest, never copied in."""
