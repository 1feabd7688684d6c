package kimi

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"steno/providers"
	"steno/providers/providertest"
)

const corpus = "../../testdata/providers/kimi"

// artifact is that of a recorded wire, whose state.json lies where the program
// put it.
func artifact(rel string) providers.Artifact {
	_, rel, _ = strings.Cut(rel, "/")
	a, ok := Provider{}.Claim(providers.Root{Provider: ID, Name: sessions, Dir: "/corpus"}, rel)
	if !ok {
		panic("a file of the corpus is not claimed: " + rel)
	}
	return a
}

func load(t testing.TB) []providertest.Case {
	cases := providertest.Load(t, ID, corpus, artifact)
	for i := range cases {
		cases[i].Artifact.Path = cases[i].File
	}
	return cases
}

func TestContract(t *testing.T) {
	providertest.Run(t, Provider{}, load(t))
}

// TestGolden wants every transcript to give what a person read from it.
func TestGolden(t *testing.T) {
	for _, c := range load(t) {
		name, _, _ := strings.Cut(c.Name, "/")
		t.Run(name, func(t *testing.T) {
			golden := strings.TrimSuffix(c.File, ".jsonl") + ".txt"
			if _, err := os.Stat(golden); err != nil {
				t.Fatalf("every transcript has a golden file: %v", err)
			}
			providertest.Golden(t, Provider{}, c, golden)
		})
	}
}

// TestNoDrift wants the list of types to cover what was recorded.
func TestNoDrift(t *testing.T) {
	for _, c := range load(t) {
		if strings.HasPrefix(c.Name, "hand-") {
			continue
		}
		p := Provider{}.Projector(c.Artifact, nil)
		for _, r := range providertest.Split(c.Data) {
			p.Project(r)
		}
		if got := p.(providers.Surveyor).Drift(); len(got) > 0 {
			t.Errorf("%s: types that have no entry: %v", filepath.Base(c.Name), got)
		}
	}
}
