package kimi

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"steno/providers/providertest"
)

// BenchmarkProject reads a recorded session, and a tool's output of some 1 MB.
func BenchmarkProject(b *testing.B) {
	session, err := os.ReadFile(filepath.Join(corpus, "tui1", "wd_work-tui1_90cd1ed07b91",
		"session_3d413f2c-9f7b-4a1a-89ff-8d924aec91f8", "agents", "main", "wire.jsonl"))
	if err != nil {
		b.Fatal(err)
	}
	out := strings.Repeat(`line of output \"quoted\"\n`, 40_000)
	output := `{"type":"context.append_loop_event","time":1764525000000,"event":{"type":"tool.result","toolCallId":"c","turnId":"0","result":{"output":"` + out + `"}}}` + "\n"
	for name, data := range map[string][]byte{"session": session, "output": []byte(output)} {
		b.Run(name, func(b *testing.B) {
			recs := providertest.Split(data)
			b.SetBytes(int64(len(data)))
			b.ReportAllocs()
			for b.Loop() {
				p := newProjector("S", nil)
				for _, r := range recs {
					p.Project(r)
				}
			}
		})
	}
}
