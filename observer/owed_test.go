package observer

import "testing"

// What a process wrote into a session while Steno was down is told although it
// has gone on to another session since: when Steno ended, the session was proved
// to be its own (D12).
func TestSessionThatWasLeftWhileDown(t *testing.T) {
	r := newRig(t)
	r.run()
	a := r.start("s1")
	r.write("s1", records("t1")...)
	want := all([]string{available}, turn("t1"))
	r.want(want...)
	r.halt()
	r.write("s1", records("t2")...)
	a.register(fakeRegistry{Session: "s2"})
	r.run()
	want = all(want, []string{restarted, available}, turn("t2"))
	r.want(want...)
	r.write("s2", records("t3")...)
	want = append(want, turn("t3")...)
	r.want(want...)
	// It is read to its end once: what is written there later is another's.
	r.write("s1", records("t4")...)
	r.halt()
	r.run()
	want = append(want, restarted, available)
	r.write("s2", records("t5")...)
	r.want(append(want, turn("t5")...)...)
}

// A session that was bound, and not read before Steno ended, is read as well.
func TestSessionThatWasLeftUnread(t *testing.T) {
	r := newRig(t)
	r.run()
	a := r.start("s1")
	r.want(available)
	r.until("it is bound", func() bool { return r.row(a.cmd.Process.Pid).Session == "s1" })
	r.halt()
	r.write("s1", records("t1")...)
	a.register(fakeRegistry{Session: "s2"})
	r.run()
	r.want(all([]string{available, restarted, available}, turn("t1"))...)
}

// The same, when another agent had read it before.
func TestSessionThatWasTakenAndLeftUnread(t *testing.T) {
	r := newRig(t)
	r.run()
	a := r.start("s1")
	r.write("s1", records("t1")...)
	want := all([]string{available}, turn("t1"))
	r.want(want...)
	a.stop()
	want = append(want, exited)
	r.want(want...)
	b := r.start("sb")
	want = append(want, available)
	r.want(want...)
	b.register(fakeRegistry{Session: "s1"})
	r.until("it is bound", func() bool { return r.row(b.cmd.Process.Pid).Session == "s1" })
	r.halt()
	r.write("s1", records("t2")...)
	b.register(fakeRegistry{Session: "s2"})
	r.run()
	r.want(all(want, []string{restarted, available}, turn("t2"))...)
}

// What another process owns by now is not read for the one that left it. That
// one was never seen before, so it begins at the tail (D11).
func TestSessionThatWasTakenWhileDown(t *testing.T) {
	r := newRig(t)
	r.run()
	a := r.start("s1")
	r.write("s1", records("t1")...)
	want := all([]string{available}, turn("t1"))
	r.want(want...)
	r.halt()
	a.register(fakeRegistry{Session: "s2"})
	r.start("s1")
	r.write("s1", records("t2")...)
	r.run()
	want = append(want, restarted, available, available)
	r.want(want...)
	r.bound("s1")
	r.write("s1", records("t3")...)
	r.want(append(want, turn("t3")...)...)
}

// What a process wrote that ended while Steno was down is not told as that of
// the one that has its pane, and so its agent, now.
func TestSessionOfAProcessThatEndedWhileDown(t *testing.T) {
	r := newRig(t)
	term := r.terminal()
	r.tmux(term)
	r.run()
	a := term.run("s1")
	r.write("s1", records("t1")...)
	want := all([]string{available}, turn("t1"))
	r.want(want...)
	r.halt()
	r.write("s1", records("t2")...)
	term.do("quit", a.pid())
	b := term.run("s2")
	r.run()
	want = append(want, restarted, available)
	r.want(want...)
	r.write("s2", records("t3")...)
	want = append(want, turn("t3")...)
	r.want(want...)
	ev := r.events()
	first, last := ev[0], ev[len(ev)-1]
	if first.AgentID != last.AgentID || first.IncarnationID == last.IncarnationID || r.row(b.pid()).Session != "s2" {
		t.Errorf("agent %s %s, then %s %s", first.AgentID, first.IncarnationID, last.AgentID, last.IncarnationID)
	}
}
