package providers

import (
	"slices"
	"strings"
	"testing"
)

func TestInputHash(t *testing.T) {
	const abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad" // FIPS 180-2, example B.1
	for in, want := range map[string]string{"abc": abc, " \n abc\t": abc, "": "", " \n": ""} {
		if got := InputHash(in); got != want {
			t.Errorf("InputHash(%q) = %s, want %s", in, got, want)
		}
	}
}

func TestIsUUID(t *testing.T) {
	const id = "0a884aad-f3bb-4b1c-9d2e-0123456789ab"
	for in, want := range map[string]bool{
		id: true, strings.ToUpper(id): false, id[1:]: false, id + "0": false, "": false,
		strings.ReplaceAll(id, "-", "0"): false, strings.Replace(id, "0", "g", 1): false, strings.Replace(id, "-", "/", 1): false,
		"-" + id[1:]: false,
	} {
		if got := IsUUID(in); got != want {
			t.Errorf("IsUUID(%q) = %v", in, got)
		}
	}
}

func TestProgramName(t *testing.T) {
	for in, want := range map[string]string{
		"": "", "/usr/bin/node": "node", "node": "node", "/opt/x/claude (deleted)": "claude", "/opt/a (deleted)/b": "b",
	} {
		if got := ProgramName(in); got != want {
			t.Errorf("ProgramName(%q) = %q, want %q", in, got, want)
		}
	}
	for in, want := range map[string]bool{"node": true, "nodejs": true, "bun": true, "deno": true, "": false, "nodemon": false, "python3": false} {
		if got := IsInterpreter(in); got != want {
			t.Errorf("IsInterpreter(%q) = %v", in, got)
		}
	}
}

func TestScript(t *testing.T) {
	for in, want := range map[string]string{
		"x.js":                             "x.js",
		"x.js -p run":                      "x.js -p run",
		"--max-old-space-size=4096 x.js a": "x.js a",
		"run x.js a":                       "x.js a",
		"--require y.js -C dev x.js":       "x.js",
		"x.js --require y.js":              "x.js --require y.js",
		"-r run":                           "",
		"run":                              "",
		"--inspect":                        "",
		"":                                 "",
	} {
		script, after, ok := Script(strings.Fields(in))
		got := strings.Join(append([]string{script}, after...), " ")
		if got != want || ok != (want != "") {
			t.Errorf("Script(%s) = %q, %v, want %q", in, got, ok, want)
		}
	}
	args := []string{"x.js", "a"}
	if _, after, _ := Script(args); !slices.Equal(after, args[1:]) {
		t.Errorf("after = %q", after)
	}
}

func TestAskOne(t *testing.T) {
	two := []Choice{{ID: "x", Label: "A", Description: "a"}, {Label: "B"}}
	got := AskOne("call", "Header", "Which?", two)
	want := []Choice{{"option_1", "A", "a"}, {"option_2", "B", ""}}
	if got == nil || got.Kind != "user_question" || got.Item != "call" || got.Prompt != "Which?" || got.Reason != "Header" ||
		!slices.Equal(got.Choices, want) || len(got.Questions) != 1 || got.Questions[0].Header != "Header" ||
		got.Questions[0].Question != "Which?" || got.Questions[0].MultiSelect || !slices.Equal(got.Questions[0].Options, want) {
		t.Errorf("AskOne = %+v", got)
	}
	if two[1].ID != "" {
		t.Error("AskOne writes into the answers that it was given")
	}
	many := slices.Repeat([]Choice{{Label: "A"}}, MaxChoices+1)
	if AskOne("call", "", "Which?", many[1:]) == nil {
		t.Errorf("%d answers give nothing", MaxChoices)
	}
	for name, got := range map[string]*Approval{
		"no call": AskOne("", "", "Which?", two), "no question": AskOne("call", "", " ", two), "no answers": AskOne("call", "", "Which?", nil),
		"too many": AskOne("call", "", "Which?", many), "no label": AskOne("call", "", "Which?", []Choice{{Label: "A"}, {Label: " "}}),
	} {
		if got != nil {
			t.Errorf("%s: %+v", name, got)
		}
	}
}
