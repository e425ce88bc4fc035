"""What can go wrong with a store, told to a person in one line: what was expected, what came, what to do."""


class StoreError(Exception):
    """The store cannot do what was asked."""


class BadValue(StoreError, ValueError):
    """A value, key, label or filter that cannot be stored or compared; nothing was written."""


class Unwritable(StoreError):
    """The folder is read-only, full, gone, or in use elsewhere for too long."""


class Unreadable(StoreError):
    """The record is not a database, or a damaged one."""


class NewerVersion(StoreError):
    """The record was written by a newer version than this one."""


class EmbedderChanged(StoreError):
    """The stored vectors come from another embedder; they are never compared with this one's."""
