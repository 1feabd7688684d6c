package gemini

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"steno/providers"
	"steno/providers/providertest"
)

// BenchmarkProject reads a recorded session, and a tool's output of some 1 MB.
func BenchmarkProject(b *testing.B) {
	session, err := os.ReadFile(filepath.Join(corpusDir, "tui1", "session-2026-11-30T18-49-65a45b4d.jsonl"))
	if err != nil {
		b.Fatal(err)
	}
	out := strings.Repeat(`line of output \"quoted\"\n`, 40_000)
	output := `{"id":"m1","timestamp":"2026-11-30T18:50:00.000Z","type":"user","content":[{"functionResponse":{"id":"c","name":"run_shell_command","response":{"output":"` + out + `"}}}]}` + "\n"
	pr, a := planned(b), providers.Artifact{Provider: ID, Path: "/corpus/tui1/session-2026-11-30T18-49-65a45b4d.jsonl"}
	for name, data := range map[string][]byte{"session": session, "output": []byte(output)} {
		b.Run(name, func(b *testing.B) {
			recs := providertest.Split(data)
			b.SetBytes(int64(len(data)))
			b.ReportAllocs()
			for b.Loop() {
				p := pr.Projector(a, nil)
				for _, r := range recs {
					p.Project(r)
				}
			}
		})
	}
}
