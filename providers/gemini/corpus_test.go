package gemini

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"steno/providers"
	"steno/providers/providertest"
)

const corpusDir = "../../testdata/providers/gemini"

// planned is a provider whose plans are the files of the corpus: the recorded
// program kept them in a directory of the machine.
func planned(t testing.TB) Provider {
	plan, err := os.ReadFile(filepath.Join(corpusDir, "tui1", "plans", "plan.md"))
	if err != nil {
		t.Fatal(err)
	}
	return Provider{plan: func(path, session, file string) string {
		// Only this session had its plan where the program looks for it.
		if session == "65a45b4d-4e24-4297-ab11-cb7e4eef05fd" && file == "plan.md" {
			return string(plan)
		}
		return ""
	}}
}

// corpus is every recorded and written artifact. A .json has one version of a
// document a line.
func corpus(t testing.TB) []providertest.Case {
	artifact := func(rel string) providers.Artifact {
		return providers.Artifact{Provider: ID, Path: "/corpus/" + rel}
	}
	cases := providertest.Load(t, ID, corpusDir, artifact)
	err := filepath.WalkDir(corpusDir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".json") {
			return err
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(corpusDir, path)
		if err != nil {
			return err
		}
		a := artifact(filepath.ToSlash(rel))
		a.Framing = providers.Document
		if len(data) > 0 && data[len(data)-1] != '\n' {
			data = append(data, '\n')
		}
		cases = append(cases, providertest.Case{Name: filepath.ToSlash(rel), File: path, Artifact: a, Data: data})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return cases
}

func TestContract(t *testing.T) {
	cases := slices.DeleteFunc(corpus(t), func(c providertest.Case) bool {
		// A version of a document that lacks what an older one had tells
		// nothing of it, so a look back cannot know the same.
		return c.Name == "hand/session-versions-cut.json"
	})
	providertest.Run(t, planned(t), cases)
}

func TestGolden(t *testing.T) {
	prov := planned(t)
	for _, c := range corpus(t) {
		t.Run(c.Name, func(t *testing.T) {
			file := strings.TrimSuffix(c.File, ".jsonl") + ".txt"
			providertest.Golden(t, prov, c, file)
		})
	}
}
