"""Runs a command in a terminal of its own: pseudo-terminal.py "COLUMNS ROWS" COMMAND...

Passes on keys (0) and output (1), and tells its process id (4). A line on descriptor 3 gives the terminal a new size;
an empty line lets the program go on, which stands still meanwhile.
"""

import fcntl
import os
import pty
import select
import signal
import struct
import sys
import termios


def size(terminal, text):
    columns, rows = map(int, text.split())
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))


pid, terminal = pty.fork()
if pid == 0:
    size(0, sys.argv[1])
    os.execvp(sys.argv[2], sys.argv[2:])
os.write(4, b"%d\n" % pid)
sources = [terminal, 0, 3]
while True:
    for source in select.select(sources, [], [])[0]:
        try:
            data = os.read(source, 65536)
        except OSError:
            data = b""
        if source == terminal:
            if not data:
                status = os.waitpid(pid, 0)[1]
                sys.exit(os.waitstatus_to_exitcode(status) % 256)
            os.write(1, data)
        elif not data:
            sources.remove(source)
        elif source == 0:
            os.write(terminal, data)
        else:
            for line in data.decode().splitlines():
                os.kill(pid, signal.SIGSTOP if line else signal.SIGCONT)
                if line:
                    size(terminal, line)
