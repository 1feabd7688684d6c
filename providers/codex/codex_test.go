package codex

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"steno/providers"
	"steno/providers/providertest"
)

const corpusDir = "../../testdata/providers/codex"

func rolloutArtifact(rel string) providers.Artifact {
	a := providers.Artifact{Provider: ID, Path: "/corpus/" + rel}
	if m := rolloutPath.FindStringSubmatch("/sessions/2026/11/30/" + filepath.Base(rel)); m != nil {
		a.Session = m[1]
	}
	return a
}

// TestContract runs the shared contract over every rollout of the corpus.
func TestContract(t *testing.T) {
	providertest.Run(t, Provider{}, providertest.Load(t, ID, corpusDir, rolloutArtifact))
}

// TestGolden compares every rollout of the corpus with what a person read out
// of it.
//
// Field list: A10, A11, D14.
func TestGolden(t *testing.T) {
	for _, c := range providertest.Load(t, ID, corpusDir, rolloutArtifact) {
		t.Run(c.Name, func(t *testing.T) {
			golden := strings.TrimSuffix(c.File, ".jsonl") + ".golden"
			if _, err := os.Stat(golden); err != nil {
				t.Fatalf("no golden: %v", err)
			}
			providertest.Golden(t, Provider{}, c, golden)
		})
	}
}
