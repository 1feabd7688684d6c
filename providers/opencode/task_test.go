package opencode

import (
	"strings"
	"testing"
)

// What a subagent in the background reports (1.18.33, experimental) comes as a
// message of the program after the turn's final: the agent goes on with that turn.
func TestReportsOfTasks(t *testing.T) {
	const report = `<task id="ses_x" state="completed"> <task_result>done</task_result> </task>`
	ended := began + "|u1 final completed|u1 waiting_on_user"
	for name, tt := range map[string]struct{ script, want string }{
		"after the final": {first + "end a1 u1 stop\nuser b1\nsyn b1 p2 " + report + "\nreply a2 b1\ntext a2 q2 ok\nend a2 b1 stop",
			ended + "|u1 waiting_on_agent|u1 says ok|u1 final completed ok|u1 waiting_on_user|= u1 waiting_on_user"},
		"while another turn is open": {first + "end a1 u1 stop\nuser u2\nsay u2 p3 more\nreply a2 u2\ncall a2 c1 bash completed\nend a2 u2 tool-calls\nuser b1\nsyn b1 p2 " + report + "\nreply a3 b1\nend a3 b1 stop",
			ended + "|u2 start|u2 waiting_on_agent|u2 final completed|u2 waiting_on_user|= u2 waiting_on_user"},
		"after Esc":                        {first + "fail a1 u1 MessageAbortedError\nuser b1\nsyn b1 p2 " + report + "\nreply a2 b1\nend a2 b1 stop", began + "|u1 final aborted|u1 waiting_on_user|u1 waiting_on_agent|u1 final completed|u1 waiting_on_user|= u1 waiting_on_user"},
		"before any turn that is known":    {"user b1\nsyn b1 p2 " + report + "\nreply a2 b1\ntext a2 q2 ok\nend a2 b1 stop", "= unknown"},
		"a command of the user is no such": {first + "end a1 u1 stop\nuser b1\nsyn b1 p2 The following tool was executed by the user\nreply a2 b1\nend a2 b1 -\nquiet", ended + "|= u1 waiting_on_user"},
		"typed by a person":                {"user u9\nsay u9 p2 " + report + "\nreply a2 u9\nend a2 u9 stop", "u9 start|u9 waiting_on_agent|u9 final completed|u9 waiting_on_user|= u9 waiting_on_user"},
	} {
		t.Run(name, func(t *testing.T) {
			for _, restarts := range []bool{false, true} {
				if got := strings.Join(play(t, tt.script, restarts), "|"); got != tt.want {
					t.Errorf("restarts %v:\n got %s\nwant %s", restarts, got, tt.want)
				}
			}
		})
	}
}
