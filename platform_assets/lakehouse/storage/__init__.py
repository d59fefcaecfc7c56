"""Where a lake's files lie and how they are written: one interface, and what keeps it.

Another kind of storage is another class beside `disk.Disk`, found by `layout.located`. What the files mean belongs into
the rooms around this one; nothing else in the platform opens, lists, writes or removes a file of the lake.
"""
