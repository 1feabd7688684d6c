package model

import "fmt"

// Block is one piece of an answer; exactly one of Text, Thinking, Tool is set,
// or only Hold.
type Block struct {
	Text     string // the stream stops at each pause in it until Release
	Thinking string
	Tool     string         // one of tools.go, or the name of a program's tool
	Input    map[string]any // of the tool
	Hold     bool           // stop before this block until Release
}

// Step is the answer to one request of a turn.
type Step struct {
	Blocks []Block
	Stop   string // one of the stop reasons; "" is the usual one
	Tokens int    // that the request is said to have; 0: what it is about
	Times  int    // give it only so often; then the next step stands in its place

	Status  int    // answer with this HTTP status instead
	Type    string // of the error, also of one in the stream
	Message string // of the error
	Event   bool   // the error comes in the stream, within the last text
	Cut     bool   // drop the connection within the last text
	Late    bool   // it comes behind the last block instead
	Patient bool   // do not tell the program to ask again at once
}

// Stop reasons.
const (
	maxTokens = "max_tokens" // the answer is cut off
	filtered  = "refusal"    // what was said is not liked
	blocked   = "blocked"    // the prompt is not liked
	empty     = "end_turn"   // nothing is said
	malformed = "malformed"  // a call of a tool that cannot be read (Gemini)
)

// calls tells whether a step calls a tool.
func (s Step) calls() bool {
	for _, b := range s.Blocks {
		if b.Tool != "" {
			return true
		}
	}
	return false
}

// fails tells whether a step does not end as an answer.
func (s Step) fails() bool { return s.Status != 0 || s.Event || s.Cut }

// breaks tells whether a step ends within its text.
func (s Step) breaks() bool { return (s.Event || s.Cut) && !s.Late }

// tokens is how long a request of size bytes is said to be.
func (s Step) tokens(size int) int {
	if s.Tokens != 0 {
		return s.Tokens
	}
	return size / 4
}

// Script is what the model says in one turn.
type Script []Step

func answer(blocks ...Block) Step { return Step{Blocks: blocks} }
func text(s string) Block         { return Block{Text: s} }
func think(s string) Block        { return Block{Thinking: s} }

// pause in a text is where its stream stops.
const pause = "\x00"

func hold() Block       { return Block{Hold: true} }
func say(s string) Step { return answer(text(s)) }

func call(tool string, input map[string]any) Block { return Block{Tool: tool, Input: input} }

func shell(command string) Block { return call(shellTool, object{"command": command}) }

func fails(status int, kind, message string) Step {
	return Step{Status: status, Type: kind, Message: message}
}

// once is a step that is given one time only.
func once(s Step) Step {
	s.Times = 1
	return s
}

// ErrorText is in the text of every error that this server sends. No event of
// Steno may have it.
const ErrorText = "raw-provider-text"

// fixed are the answers that no prompt asks for. A summary names the script by
// which a turn goes on that the program compacted in its middle.
var fixed = map[string]Script{
	"compact":      {say("<analysis>looked</analysis>\n<summary>\nSUMMARY: they talked. SCENARIO:compacted\n</summary>")},
	"review":       {say(`{"findings":[],"overall_correctness":"patch is correct","overall_explanation":"REVIEW: it is fine.","overall_confidence_score":0.8}`)},
	"title":        {say(`{"title":"A title"}`)},
	"notification": {say("NOTED: the task is done.")},
	"other":        {say("OTHER: nothing was asked by name.")},
}

// step gives the answer number n of a script. The last one is given again if it
// fails, because the programs ask again, and in a script that has a step of few
// times, because some take the words of a failed answer for an answer.
func (s *Server) step(name string, n int) Step {
	script, ok := scripts[name]
	if !ok {
		script, ok = fixed[name]
	}
	if name == "compacted" { // how much of the turn is still there, each program decides
		n = 0
	}
	if !ok {
		return say(fmt.Sprintf("UNKNOWN SCRIPT %q", name))
	}
	left, again := n, script[len(script)-1].fails()
	for i, st := range script {
		again = again || st.Times > 0
		switch {
		case st.Times == 0 && left == 0:
			return st
		case st.Times == 0:
			left--
		case left == 0 && s.given(fmt.Sprintf("%s %d", name, i)) <= st.Times:
			return st
		}
	}
	if again {
		return script[len(script)-1]
	}
	return say(fmt.Sprintf("STEP %d OF %q IS NOT IN THE SCRIPT", n+1, name))
}

// given counts how often a step was asked for.
func (s *Server) given(key string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.times[key]++
	return s.times[key]
}
