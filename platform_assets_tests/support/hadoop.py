"""Settings of a Hadoop cluster that was made for other work: where it has a say, rows are lost or nothing is found."""

from __future__ import annotations

from pathlib import Path

_SETTINGS = """<configuration>
<property><name>fs.defaultFS</name><value>hdfs://127.0.0.1:{port}</value></property>
<property><name>ipc.client.connect.max.retries</name><value>0</value></property>
<property><name>mapreduce.input.linerecordreader.line.maxlength</name><value>20</value></property>
<property><name>mapred.linerecordreader.maxlength</name><value>20</value></property>
<property><name>mapreduce.input.pathFilter.class</name><value>com.example.NoSuchFilter</value></property>
<property><name>io.compression.codecs</name><value>com.example.NoSuchCodec</value></property>
</configuration>"""


def write_settings(folder: Path, *, port: int) -> None:
    """Write them as `core-site.xml`: no line is longer than 20 bytes, and its file system is at a port of nobody's."""
    folder.mkdir(exist_ok=True)
    folder.chmod(0o755)
    (folder / "core-site.xml").write_text(_SETTINGS.format(port=port))
    (folder / "core-site.xml").chmod(0o644)
