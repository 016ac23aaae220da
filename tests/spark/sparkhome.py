"""Where a Spark release is, and how its programs are started here.

Shared by the scripts of this folder. Everything they start listens on
loopback, dies with the script that started it, and takes nothing from the
caller's environment that Spark would read as configuration.
"""

import ctypes
import hashlib
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
SCRATCH = pathlib.Path(tempfile.gettempdir()) / "spark-exporter"

# What spark-class adds for Java 17; needed when a class is started without it.
ADD_OPENS = [
    f"--add-opens=java.base/{package}=ALL-UNNAMED"
    for package in (
        "java.lang",
        "java.lang.invoke",
        "java.lang.reflect",
        "java.io",
        "java.net",
        "java.nio",
        "java.util",
        "java.util.concurrent",
        "java.util.concurrent.atomic",
        "sun.nio.ch",
        "sun.nio.cs",
        "sun.security.action",
        "sun.util.calendar",
    )
]


class Spark:
    """One Spark release from tests/parts/spark."""

    def __init__(self, version):
        part = subprocess.run(
            [HERE.parent / "parts" / "spark", version], stdout=subprocess.PIPE, text=True
        )
        if part.returncode != 0:
            sys.exit(part.returncode)
        self.version = version
        self.venv = pathlib.Path(part.stdout.splitlines()[-1])
        self.python = self.venv / "bin" / "python"
        self.home = next(self.venv.glob("lib/python*/site-packages/pyspark"))
        core = next((self.home / "jars").glob("spark-core_*.jar"))
        self.scala = core.name.removeprefix("spark-core_").split("-")[0]

    def environment(self, host="127.0.0.1"):
        kept = {
            key: value
            for key, value in os.environ.items()
            if not key.startswith(("SPARK_", "PYSPARK_", "HADOOP_", "YARN_")) and key != "PYTHONPATH"
        }
        return kept | {
            "SPARK_HOME": str(self.home),
            "SPARK_LOCAL_IP": host,
            "SPARK_SCALA_VERSION": self.scala,
            "PYSPARK_PYTHON": str(self.python),
            # Names in event logs and file paths that do not depend on who runs it.
            "SPARK_USER": "spark",
            "HADOOP_USER_NAME": "spark",
        }

    def class_command(self, main, *arguments, java_options=()):
        """Command line of a Spark class that has no start script in the wheel."""
        return ["java", "-Xmx1g", *ADD_OPENS, *java_options, "-cp", f"{self.home}/jars/*", main, *arguments]

    def arrow_path(self):
        """Where pandas and Arrow are, for workloads with `# needs: arrow`."""
        part = subprocess.run([HERE.parent / "parts" / "arrow"], stdout=subprocess.PIPE, text=True)
        if part.returncode != 0:
            sys.exit(part.returncode)
        return next(pathlib.Path(part.stdout.splitlines()[-1]).glob("lib/python*/site-packages"))

    def faults_jar(self):
        """The classes of java/, compiled against this release, once per content."""
        sources = sorted((HERE / "java").glob("**/*.java"))
        digest = hashlib.sha256(b"".join(path.read_bytes() for path in sources)).hexdigest()[:12]
        jar = SCRATCH / f"java-{self.version}-{digest}" / "faults.jar"
        if not jar.exists():
            SCRATCH.mkdir(parents=True, exist_ok=True)
            work = pathlib.Path(tempfile.mkdtemp(dir=SCRATCH))
            subprocess.run(
                ["javac", "-nowarn", "-d", work / "classes", "-cp", f"{self.home}/jars/*", *sources], check=True
            )
            subprocess.run(["jar", "cf", work / "faults.jar", "-C", work / "classes", "."], check=True)
            jar.parent.mkdir(exist_ok=True)
            os.replace(work / "faults.jar", jar)
            shutil.rmtree(work)
        return jar


def free_port(host="127.0.0.1"):
    """A port nobody listens on. Somebody may take it before it is used: callers
    that start a server with it try again when the server does not come up."""
    with socket.socket() as probe:
        probe.bind((host, 0))
        return probe.getsockname()[1]


def _settle():
    pr_set_pdeathsig = 1
    ctypes.CDLL(None).prctl(pr_set_pdeathsig, signal.SIGKILL)
    # Linux schedules each session as a group, in which our own niceness would
    # count only among ourselves: give it to the group as well.
    if os.nice(0):
        try:
            pathlib.Path("/proc/self/autogroup").write_text(str(os.nice(0)))
        except OSError:
            pass


def start(command, **options):
    """Start a program in a process group of its own that dies with this process."""
    return subprocess.Popen(
        [str(word) for word in command], start_new_session=True, preexec_fn=_settle, **options
    )


def stop(process, patience=10):
    """End a program started with `start` and everything in its process group."""
    for number, seconds in ((signal.SIGTERM, patience), (signal.SIGKILL, patience)):
        try:
            os.killpg(process.pid, number)
        except ProcessLookupError:
            pass
        try:
            process.wait(seconds)
        except subprocess.TimeoutExpired:
            continue
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
