"""Storage of a lake's files: one interface for disks and object stores.

Another kind of storage is another class like `disk.Disk`, found by `layout.located`. The meaning of files belongs into
the rooms around this one; nothing else in the platform opens, lists, writes or removes a file of the lake.
"""
