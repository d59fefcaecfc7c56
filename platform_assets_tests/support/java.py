"""A Java that is as old as a test needs it."""

from __future__ import annotations

from pathlib import Path


def fake_java(folder: Path, script: str) -> Path:
    """A program named `java` that really runs."""
    folder.mkdir(parents=True, exist_ok=True)
    program = folder / "java"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    return program


def says(version: str) -> str:
    return f"""echo 'openjdk version "{version}" 2025-01-01' >&2"""
