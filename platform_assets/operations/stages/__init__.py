"""Stages that people open by name: kept on disk, looked at, compared, published, dropped.

How days are computed into a stage is `engine.step`.
"""
