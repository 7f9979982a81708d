"""The agent on an Android phone: put there, started, found, stopped, and every trace of it taken away.

AgentOnPhone(adb, program).start() -> port of the phone's loopback

/data/local/tmp/xnncc-rack/          0700: adb push gives files to everyone, the folder does not
    token, log, stay_on              while someone holds the phone
    cache/agent-<hash>, cache/jobs/  stay: the program, and the libraries it was sent
"""

from __future__ import annotations

import hashlib
import os
import re
import secrets
import tempfile
from pathlib import Path

from xnncc.device.adb_client import Adb
from xnncc.errors import DeviceError

FOLDER = "/data/local/tmp/xnncc-rack"
_TOKEN_BYTES = 32
_START_TENTHS = 150  # a cold phone needs a second or two

# [c]: so that the pattern does not find the shell that searches. Forked children have their parent's arguments.
_FIND = f"grep -l '{FOLDER}/[c]ache/jobs' /proc/[0-9]*/cmdline 2>/dev/null | tr -dc '0-9\\n'"
_STOP = f"""
for signal in TERM KILL; do
  p=$({_FIND}); [ -z "$p" ] || kill -$signal $p 2>/dev/null
  n=0; while [ -n "$p" ] && [ $n -lt 20 ]; do sleep 0.1; p=$({_FIND}); n=$((n+1)); done
done; true
"""
_START = """
cd {folder} && export D={folder}/cache || exit 1
chmod 600 token && chmod 700 $D/{program} && rm -f log && mkdir -p $D/jobs || exit 1
(nohup sh -c 'exec $D/{program} --port 0 --token-file {folder}/token --dir $D/jobs' </dev/null >log 2>&1 &)
n=0; while [ $n -lt {tenths} ]; do
  grep -q '^listening ' log 2>/dev/null && break
  [ $n -lt 20 ] || [ -n "$({find})" ] || break
  sleep 0.1; n=$((n+1))
done
cat log
"""
_WAKE = "input keyevent KEYCODE_WAKEUP"
# What the phone was set to is kept on the phone: who dies holding it does not forget it.
_STAY_ON = f"""
cd {FOLDER} || exit 1
[ -f stay_on ] || settings get global stay_on_while_plugged_in > stay_on
settings put global stay_on_while_plugged_in 7; {_WAKE}
"""
_RESTORE = f"""
cd {FOLDER} 2>/dev/null || exit 0
if [ -f stay_on ]; then
  was=$(cat stay_on)
  case "$was" in
    ''|null) settings delete global stay_on_while_plugged_in >/dev/null ;;
    *) settings put global stay_on_while_plugged_in "$was" ;;
  esac
fi
rm -f token log stay_on
"""


class AgentOnPhone:
    """The agent ``program`` (a file of this machine) on the phone of ``adb``, with a token of its own each start."""

    def __init__(self, adb: Adb, program: Path) -> None:
        self.adb, self.program = adb, program
        self.token = b""

    def start(self) -> int:
        """Return the port where a fresh agent listens; one that was left running is ended. Raises: DeviceError."""
        name = self._put_program()
        self.adb.shell(_STOP)
        self._put_token()
        command = _START.format(folder=FOLDER, program=name, find=_FIND, tenths=_START_TENTHS)
        log = self.adb.shell(command, seconds=30 + _START_TENTHS / 5)
        found = re.search(r"^listening (\d{1,5})\r?$", log, re.MULTILINE)
        if found is None or not 0 < int(found[1]) < 65536:
            words = log.strip().splitlines()[-1][:200] if log.strip() else "it said nothing"
            raise DeviceError(self.adb.what, f"the agent does not start: {words}", "See 'xnncc rack doctor'.")
        self.adb.outcome("shell", _STAY_ON)  # a phone that refuses is told by its screen
        return int(found[1])

    def wake(self) -> None:
        """Turn the screen on. Raises: DeviceError when the phone is gone."""
        self.adb.outcome("shell", _WAKE)

    def stop(self) -> None:
        """End the agent and leave nothing but the cache folder. Raises: DeviceError when the phone is gone."""
        self.adb.shell(_STOP)
        self.adb.shell(_RESTORE)

    def _put_program(self) -> str:
        """Return the program's name in the cache folder, where it is now."""
        name = f"agent-{hashlib.sha256(self.program.read_bytes()).hexdigest()[:16]}"
        made = self.adb.shell(
            f"mkdir -p {FOLDER}/cache; chmod 700 {FOLDER}; [ ! -f {FOLDER}/cache/{name} ] || echo there"
        )
        if made.strip() != "there":
            aside = f"{FOLDER}/cache/{name}.new"
            self.adb.push(self.program, aside)
            self.adb.shell(f"rm -f {FOLDER}/cache/agent-????????????????; mv {aside} {FOLDER}/cache/{name}")
        return name

    def _put_token(self) -> None:
        self.token = secrets.token_hex(_TOKEN_BYTES).encode()
        descriptor, path = tempfile.mkstemp(prefix="xnncc-")  # 0600
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(self.token)
            self.adb.push(Path(path), f"{FOLDER}/token")
        finally:
            os.unlink(path)
