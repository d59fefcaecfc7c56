"""What people do with a platform, one room each: open, read, pin, roll back, stage, verify, audit, recover.

Put here what commands and jobs call apart from a refresh. Rooms know each other as little as possible: what several of
them need is a module of this room, or belongs into the engine.
"""
