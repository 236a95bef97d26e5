"""gdb commands for programs that use weft, for live processes and core files.

    (gdb) source weft-gdb.py

    weft threadlets        list the threadlets of all loops
    weft bt ID             print the backtrace of a suspended threadlet
    weft switch ID         select it: bt, frame, info locals and so on apply to it
    weft switch back       select the thread again

An ID is a number from the list, or a name.  The commands write nothing into the program: while a
threadlet is selected, an unwinder makes gdb treat the suspended frame as the caller of the thread's
innermost frame.  So frame 0 belongs to the thread, and the threadlet begins at frame 1.

The library exports the offsets in `weft_gdb_layout`; no debug information of the library is needed.
With debug information of the program, calls are shown with their lines.
"""
import gdb
import gdb.unwinder

PLACE_BYTES, NAME_BYTES = 32, 24  # of an entry in weft_gdb_layout, and its name

# Registers saved on a suspended stack, in words above its stack pointer;
# src/base/switch/*.S.
SAVED = {
    "x86-64": (dict(r15=1, r14=2, r13=3, r12=4, rbx=5, rbp=6, rip=7), "rsp", 8),
    "aarch64": (dict(x29=0, pc=1, **{f"x{19 + i}": 2 + i for i in range(10)}), "sp", 22),
}
CODE_MASK = (1 << 48) - 1  # arm64: the upper bits may be a pointer signature


class Memory:
    """Words and strings of the program, by address."""

    def word(self, address):
        return int.from_bytes(self.read(address, 8), "little")

    def text(self, address, size=32):
        return bytes(self.read(address, size)).split(b"\0")[0].decode(errors="replace")

    def read(self, address, size):
        return gdb.selected_inferior().read_memory(address, size)


class Threadlet:
    def __init__(self, layout, loop, address):
        at = layout.at
        word, text = layout.memory.word, layout.memory.text
        self.loop, self.address = loop, address
        self.id = word(word(address + at["threadlet.handle"]) + at["handle.id"])
        self.name = text(address + at["threadlet.name"])
        self.fn = word(address + at["threadlet.fn"])
        self.spawned_at = word(address + at["threadlet.spawned_at"])
        self.sp = word(address + at["threadlet.sp"])
        self.waiter = word(address + at["threadlet.waiter"])
        self.state, self.what = "ready", ""
        if self.waiter:
            self.state = "waiting"
            what = word(self.waiter + at["waiter.what"])
            on = word(self.waiter + at["waiter.on"])
            self.what = text(what) + (f" {on if on < 1 << 40 else hex(on)}" if on else "")


class Layout:
    """The offsets of this program's structs, and what they lead to."""

    def __init__(self):
        self.memory = Memory()
        try:
            entry = int(gdb.parse_and_eval("(unsigned long)&weft_gdb_layout"))
        except gdb.error:
            raise gdb.GdbError("weft_gdb_layout not found: the program does not use weft, or"
                               " has not loaded it yet")
        self.at = {}
        while True:
            name = self.memory.text(entry, NAME_BYTES)
            if not name:
                break
            self.at[name] = self.memory.word(entry + NAME_BYTES)
            entry += PLACE_BYTES
        if self.at.get("version") != 1:
            raise gdb.GdbError("weft-gdb.py does not match the version of weft in this program")

    def loops(self):
        loop = self.memory.word(self.at["registry"] + self.at["registry.first"])
        while loop:
            yield loop
            loop = self.memory.word(loop + self.at["loop.next"])

    def threadlets(self, loop):
        sched = self.memory.word(loop + self.at["loop.sched"])
        if not sched:
            return
        thread = self.memory.word(sched + self.at["sched.thread"])
        running = self.memory.word(thread + self.at["thread.threadlet"]) if thread else 0
        address = self.memory.word(sched + self.at["sched.newest"])
        while address:
            threadlet = Threadlet(self, loop, address)
            if address == running:
                threadlet.state = "running"
            yield threadlet
            address = self.memory.word(address + self.at["threadlet.older"])

    def describe(self, loop):
        name = self.memory.text(loop + self.at["loop.name"], 16)
        number = self.memory.word(loop + self.at["loop.id"])
        return f"loop {number}" + (f" ({name})" if name else "")

    def find(self, wanted):
        """The one threadlet with that ID or name."""
        found = [t for loop in self.loops() for t in self.threadlets(loop)
                 if str(t.id) == wanted or t.name == wanted]
        if len(found) != 1:
            raise gdb.GdbError(f"{len(found) or 'no'} threadlets are called {wanted}")
        return found[0]


def place(address):
    """A code address as text: a line, else a function, else a number."""
    line = gdb.find_pc_line(address - 1)
    if line.symtab and line.line:
        return f"{line.symtab.filename}:{line.line}"
    symbol = gdb.execute(f"info symbol {address:#x}", to_string=True).strip()
    return hex(address) if symbol.startswith("No symbol") else symbol


def function(address):
    symbol = gdb.execute(f"info symbol {address:#x}", to_string=True).strip()
    return hex(address) if symbol.startswith("No symbol") else symbol.split()[0]


# --- selecting a threadlet ----------------------------------------------------

class FrameId:
    def __init__(self, sp, pc):
        self.sp, self.pc = sp, pc


class Unwinder(gdb.unwinder.Unwinder):
    """Makes the selected threadlet the caller of the thread's innermost frame."""

    def __init__(self):
        super().__init__("weft")
        self.threadlet = None

    def look_at(self, threadlet):
        gdb.execute("frame 0", to_string=True)
        self.threadlet = None
        gdb.invalidate_cached_frames()
        if threadlet:
            frame = gdb.newest_frame()
            self.innermost = tuple(int(frame.read_register(r)) for r in ("sp", "pc"))
            self.thread = gdb.selected_thread().ptid
            self.threadlet = threadlet
            gdb.invalidate_cached_frames()

    def __call__(self, pending):
        if not self.threadlet or gdb.selected_thread().ptid != self.thread:
            return None
        sp, pc = (pending.read_register(r) for r in ("sp", "pc"))
        if (int(sp), int(pc)) != self.innermost:
            return None
        saved, sp_name, words = next(registers for cpu, registers in SAVED.items()
                                     if cpu in pending.architecture().name())
        info = pending.create_unwind_info(FrameId(sp, pc))
        memory = Memory()
        for name, index in saved.items():
            value = memory.word(self.threadlet.sp + 8 * index)
            if name == "pc":
                value &= CODE_MASK
            self.save(pending, info, name, value)
        self.save(pending, info, sp_name, self.threadlet.sp + 8 * words)
        return info

    @staticmethod
    def save(pending, info, name, value):
        kind = pending.read_register(name).type
        info.add_saved_register(name, gdb.Value(value).cast(kind))


unwinder = Unwinder()
gdb.unwinder.register_unwinder(None, unwinder, replace=True)


def forget(_):
    unwinder.threadlet = None


gdb.events.cont.connect(forget)


def suspended(wanted):
    threadlet = Layout().find(wanted)
    if threadlet.state == "running":
        raise gdb.GdbError(f"threadlet {wanted} is running: select the thread of its loop instead")
    return threadlet


# --- the commands -------------------------------------------------------------

class Weft(gdb.Command):
    """weft threadlets | bt ID | switch ID | switch back"""

    def __init__(self):
        super().__init__("weft", gdb.COMMAND_STACK)

    def invoke(self, argument, from_tty):
        words = gdb.string_to_argv(argument)
        if words == ["threadlets"]:
            self.list()
        elif len(words) == 2 and words[0] == "bt":
            self.backtrace(words[1])
        elif words == ["switch", "back"]:
            unwinder.look_at(None)
        elif len(words) == 2 and words[0] == "switch":
            unwinder.look_at(suspended(words[1]))
            gdb.execute("frame 1")
        else:
            raise gdb.GdbError("usage: " + self.__doc__)

    def list(self):
        layout = Layout()
        for loop in layout.loops():
            print(layout.describe(loop))
            for t in layout.threadlets(loop):
                name = t.name or function(t.fn)
                wait = f" for {t.what}" if t.what else ""
                print(f"  {t.id} ({name}) {t.state}{wait}, started at {place(t.spawned_at)}")

    def backtrace(self, wanted):
        before = unwinder.threadlet
        unwinder.look_at(suspended(wanted))
        try:
            print("\n".join(gdb.execute("bt", to_string=True).splitlines()[1:]))
        finally:
            unwinder.look_at(before)


Weft()
