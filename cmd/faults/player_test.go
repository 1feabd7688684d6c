package faults

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"time"
)

// harness writes the records of one program.
type harness interface {
	start() error                  // what the program leaves behind before any prompt
	prompt(turn string) [][]byte   // the records of a turn's start
	text(turn, s string) [][]byte  // the records of one answer
	final(turn, s string) [][]byte // the records of the last answer and the turn's end
	turnID() string                // the id of the turn that comes next
	write(data []byte) error       // appends to the session's file
	renew() error                  // another session from now on
	path() string                  // the session's file
	stop() error                   // a clean exit
}

// harnesses are the programs that can be played.
var harnesses = map[string]func() (harness, error){"claude": newClaude, "codex": newCodex}

// player obeys commands, one a line, and answers each with one:
//
//	turn N SIZE    a whole turn with N answers of about SIZE bytes, and a short last one
//	begin          the start of a turn
//	text SIZE      one answer of the open turn
//	half SIZE      the same, and half of its last record alone
//	rest           the other half
//	final          a short last answer and the end of the turn
//	raw LINE       any line, as it is
//	mark           how the answers of the present session are marked
//	clear          another session, by the same process; answers its mark
//	go SEED PAUSE  turns of all kinds until "stop", with pauses around PAUSE; "clear" comes between two
//	stop           ends go at the end of a turn
//	files          the session files so far, as JSON
//	exit           a clean exit
type player struct {
	harness
	session string // a short name of the session, for marks
	count   int
	turn    string // the open one
	rest    []byte
	written []string // files
	r       *rand.Rand
	pause   time.Duration
}

func playAgent(name string) error {
	h, err := harnesses[name]()
	if err != nil {
		return err
	}
	if err := h.start(); err != nil {
		return fmt.Errorf("start as %s: %w", name, err)
	}
	p := &player{harness: h}
	p.named()
	fmt.Println("ready")
	commands := make(chan string)
	// Ends with the process: a read of a pipe cannot be called off.
	go func() {
		defer close(commands)
		for scan := bufio.NewScanner(os.Stdin); scan.Scan(); {
			commands <- scan.Text()
		}
	}()
	for line := range commands {
		word, arg, _ := strings.Cut(line, " ")
		if word == "exit" {
			if err := p.stop(); err != nil {
				return err
			}
			fmt.Println("bye")
			return nil
		}
		answer, err := p.obey(word, arg, commands)
		if err != nil {
			answer = fmt.Sprintf("error: %v", err)
		}
		fmt.Println(answer)
	}
	return nil // the test is gone
}

// named gives the present session a name.
func (p *player) named() {
	p.session = fmt.Sprintf("%08x", rand.Uint32())
	p.written = append(p.written, p.path())
}

func (p *player) obey(word, arg string, commands <-chan string) (string, error) {
	var n, size int
	switch word {
	case "turn":
		if _, err := fmt.Sscan(arg, &n, &size); err != nil {
			return "", err
		}
		return "ok", p.whole(n, func() int { return size })
	case "begin":
		return "ok", p.begin()
	case "text", "half":
		if _, err := fmt.Sscan(arg, &size); err != nil {
			return "", err
		}
		if word == "text" {
			return "ok", p.say(size)
		}
		return "ok", p.half(size)
	case "rest":
		data := p.rest
		p.rest = nil
		return "ok", p.write(data)
	case "final":
		return "ok", p.end()
	case "raw":
		return "ok", p.write([]byte(arg + "\n"))
	case "clear":
		return p.another()
	case "mark":
		return p.session, nil
	case "files":
		out, err := json.Marshal(p.written)
		return string(out), err
	case "go":
		var seed uint64
		var pause string
		if _, err := fmt.Sscan(arg, &seed, &pause); err != nil {
			return "", err
		}
		var err error
		if p.pause, err = time.ParseDuration(pause); err != nil {
			return "", err
		}
		p.r = rand.New(rand.NewPCG(seed, 0))
		fmt.Println("ok")
		defer func() { p.r = nil }()
		return "ok", p.run(commands)
	}
	return "", fmt.Errorf("unknown command %q", word)
}

// run writes turns until stop.
func (p *player) run(commands <-chan string) error {
	for {
		select {
		case command := <-commands:
			if command != "clear" {
				return nil
			}
			mark, err := p.another()
			if err != nil {
				return err
			}
			fmt.Println(mark)
		default:
		}
		if err := p.whole(1+p.r.IntN(4), p.size); err != nil {
			return err
		}
		if p.r.IntN(80) == 0 { // beyond the bound of a record
			if err := errors.Join(p.begin(), p.say(5<<20-p.r.IntN(1<<19))); err != nil {
				return err
			}
		}
	}
}

// size is the length of an answer: most are short, few are some MiB.
func (p *player) size() int {
	switch n := p.r.IntN(1000); {
	case n < 750:
		return p.r.IntN(400)
	case n < 950:
		return p.r.IntN(8 << 10)
	case n < 990:
		return p.r.IntN(100 << 10)
	case n < 998:
		return p.r.IntN(1 << 20)
	}
	return 1<<20 + p.r.IntN(1<<20) // with its escapes below the bound of a record
}

func (p *player) whole(n int, size func() int) error {
	if err := p.begin(); err != nil {
		return err
	}
	for range n {
		if err := p.say(size()); err != nil {
			return err
		}
	}
	return p.end()
}

func (p *player) begin() error {
	p.turn = p.turnID()
	return p.put(p.prompt(p.turn))
}

func (p *player) say(size int) error { return p.put(p.text(p.turn, p.answer(size))) }

func (p *player) end() error {
	err := p.put(p.final(p.turn, p.answer(20)))
	p.turn = ""
	return err
}

func (p *player) another() (mark string, err error) {
	if err := p.renew(); err != nil {
		return "", err
	}
	p.named()
	return p.session, nil
}

// answer is a marked text of about size bytes, with what JSON has to escape.
func (p *player) answer(size int) string {
	p.count++
	const filler = "it's \"done\",\n\tgrün \\ 例 <b>😀</b> and so on. "
	mark := fmt.Sprintf("[m:%s:%d] ", p.session, p.count)
	return mark + strings.Repeat(filler, size/len(filler)) + "end"
}

func (p *player) half(size int) error {
	var data []byte
	for _, r := range p.text(p.turn, p.answer(size)) {
		data = append(append(data, r...), '\n')
	}
	p.rest = data[len(data)-len(data)/2:]
	return p.write(data[:len(data)-len(data)/2])
}

// put appends records, in a free run in pieces of any length.
func (p *player) put(records [][]byte) error {
	var data []byte
	for _, r := range records {
		data = append(append(data, r...), '\n')
	}
	if p.r == nil {
		return p.write(data)
	}
	pieces := 1
	switch n := p.r.IntN(10); {
	case n >= 9:
		pieces = 2 + p.r.IntN(6)
	case n >= 6:
		pieces = 2
	}
	for ; pieces > 1 && len(data) > 1; pieces-- {
		n := 1 + p.r.IntN(len(data)-1)
		if err := p.write(data[:n]); err != nil {
			return err
		}
		data = data[n:]
		p.rests()
	}
	err := p.write(data)
	p.rests()
	return err
}

// rests is the pace of a free run.
func (p *player) rests() {
	if p.pause > 0 {
		time.Sleep(time.Duration(p.r.Int64N(int64(2 * p.pause))))
	}
}
