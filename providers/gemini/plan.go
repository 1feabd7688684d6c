package gemini

import (
	"os"
	"path/filepath"

	"steno/providers/files"
)

// maxPlan bounds a plan's file, in bytes. A longer one is no plan.
const maxPlan = 256 << 10

// readPlan reads the plan that a call of exit_plan_mode names: a file in
// <project>/<session>/plans, beside the chats of path (0.61.0: the tool accepts
// no other place). No link and no ".." leads out of that directory. It is ""
// when there is no such file; the reason makes no difference to anybody.
func readPlan(path, session, file string) string {
	if file == "" || !filepath.IsLocal(file) {
		return ""
	}
	if session == "" {
		session = sessionOf(path)
	}
	if session == "" {
		return ""
	}
	project, err := os.OpenRoot(filepath.Dir(filepath.Dir(path)))
	if err != nil {
		return ""
	}
	defer project.Close()
	plans, err := project.OpenRoot(filepath.Join(session, "plans"))
	if err != nil {
		return ""
	}
	defer plans.Close()
	b, _, err := files.ReadIn(plans, file, maxPlan)
	if err != nil {
		return ""
	}
	return string(b)
}
