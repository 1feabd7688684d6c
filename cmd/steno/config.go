package main

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/BurntSushi/toml"
	"github.com/rs/zerolog"

	"steno/providers"
)

const maxConfigFile = 1 << 20

// config holds the effective settings and where each came from.
type config struct {
	ConfigFile      string
	StateDir        string
	Socket          string
	LogLevel        string
	RetentionEvents int
	RetentionBytes  int64
	Tmux            string
	TmuxSockets     []string
	Sweep           time.Duration
	Throttle        time.Duration
	WatchBudget     int
	Roots           map[string][]string // provider id -> further roots

	home   string
	origin map[string]string // setting -> "default", "file", "environment NAME", "flag --name"
}

// setting is one value that flag, environment and file can give. Roots are the
// exception: they are a table, and only the file has them.
type setting struct {
	key   string // name in the file; the flag has dashes, the environment STENO_ and capitals
	usage string
	get   func(*config) string
	set   func(*config, string) error
}

// settings in the order in which "steno config" prints them.
var settings = []setting{
	{"config", "configuration `file`",
		func(c *config) string { return c.ConfigFile },
		func(c *config, s string) error { return setPath(&c.ConfigFile, s) }},
	{"state_dir", "`directory` of the event log",
		func(c *config) string { return c.StateDir },
		func(c *config, s string) error { return setPath(&c.StateDir, s) }},
	{"socket", "`path` of the daemon's socket",
		func(c *config) string { return c.Socket },
		func(c *config, s string) error { return setPath(&c.Socket, s) }},
	{"log_level", "`level` of the log: debug, info, warn, error",
		func(c *config) string { return c.LogLevel },
		func(c *config, s string) error {
			level, err := zerolog.ParseLevel(s)
			if err != nil || s == "" || level < zerolog.DebugLevel || level > zerolog.ErrorLevel {
				return errors.New("want debug, info, warn or error")
			}
			c.LogLevel = level.String()
			return nil
		}},
	{"retention_events", "most `events` that the log keeps",
		func(c *config) string { return strconv.Itoa(c.RetentionEvents) },
		func(c *config, s string) error { return setCount(&c.RetentionEvents, s, 1, 100_000_000) }},
	{"retention_bytes", "most `bytes` of events that the log keeps, such as 2GiB",
		func(c *config) string { return strconv.FormatInt(c.RetentionBytes, 10) },
		func(c *config, s string) error {
			n, err := parseBytes(s)
			if err != nil {
				return err
			}
			if n < 1<<20 {
				return errors.New("want at least 1MiB")
			}
			c.RetentionBytes = n
			return nil
		}},
	{"tmux", "tmux `program`, found in PATH unless it is a path",
		func(c *config) string { return c.Tmux },
		func(c *config, s string) error {
			if s == "" {
				return errors.New("want a program")
			}
			c.Tmux = s
			return nil
		}},
	{"tmux_sockets", "further tmux `sockets`, separated by commas",
		func(c *config) string { return strings.Join(c.TmuxSockets, ",") },
		func(c *config, s string) error {
			c.TmuxSockets = nil
			for p := range strings.SplitSeq(s, ",") {
				if p == "" {
					continue
				}
				var path string
				if err := setPath(&path, p); err != nil {
					return err
				}
				c.TmuxSockets = append(c.TmuxSockets, path)
			}
			return nil
		}},
	{"sweep", "`time` between two sweeps of all directories",
		func(c *config) string { return c.Sweep.String() },
		func(c *config, s string) error { return setDuration(&c.Sweep, s, time.Second, time.Hour) }},
	{"throttle", "shortest `time` between two looks at one session's file",
		func(c *config) string { return c.Throttle.String() },
		func(c *config, s string) error {
			return setDuration(&c.Throttle, s, 100*time.Microsecond, 10*time.Second)
		}},
	{"watch_budget", "most inotify `watches`, within the system's limit",
		func(c *config) string { return strconv.Itoa(c.WatchBudget) },
		func(c *config, s string) error { return setCount(&c.WatchBudget, s, 1, 10_000_000) }},
}

func setDuration(to *time.Duration, s string, least, most time.Duration) error {
	d, err := time.ParseDuration(s)
	if err != nil {
		return errors.New("want a duration such as 30s")
	}
	if d < least || d > most {
		return fmt.Errorf("want %v to %v", least, most)
	}
	*to = d
	return nil
}

func (s setting) flag() string { return strings.ReplaceAll(s.key, "_", "-") }
func (s setting) env() string  { return "STENO_" + strings.ToUpper(s.key) }

// muxSocketEnv is where consumers of the contract name the socket. It is read
// by clients only: in a daemon it would name somebody else's socket.
const muxSocketEnv = "WAKTERM_UNIX_SOCKET"

func setPath(to *string, s string) error {
	if s == "" {
		return errors.New("want a path")
	}
	abs, err := filepath.Abs(s)
	if err != nil {
		return err
	}
	*to = abs
	return nil
}

func setCount(to *int, s string, low, high int) error {
	n, err := strconv.Atoi(s)
	if err != nil || n < low || n > high {
		return fmt.Errorf("want a number from %d to %d", low, high)
	}
	*to = n
	return nil
}

// parseBytes reads a number of bytes with an optional binary unit.
func parseBytes(s string) (int64, error) {
	number, shift := s, 0
	for i, unit := range []string{"KiB", "MiB", "GiB", "TiB"} {
		if rest, ok := strings.CutSuffix(s, unit); ok {
			number, shift = strings.TrimSpace(rest), 10*(i+1)
		}
	}
	n, err := strconv.ParseInt(number, 10, 64)
	if err != nil || n < 0 || n > (1<<62)>>shift {
		return 0, errors.New("want a number of bytes such as 2147483648 or 2GiB")
	}
	return n << shift, nil
}

// sources is where settings are looked for, strongest last.
type sources struct {
	getenv   func(string) string
	flags    map[string]string // key -> value, of the flags that were given
	skipFile bool
	client   bool // muxSocketEnv counts
}

// loadConfig finds the effective settings.
func loadConfig(src sources) (*config, error) {
	c, err := defaults(src.getenv)
	if err != nil {
		return nil, err
	}
	// Where the file is has to be known before it is read.
	if err := c.override(src, settings[:1]); err != nil {
		return nil, err
	}
	if !src.skipFile {
		if err := c.readFile(c.ConfigFile, c.origin["config"] != "default"); err != nil {
			return nil, err
		}
	}
	if v := src.getenv(muxSocketEnv); v != "" && src.client {
		if err := setPath(&c.Socket, v); err != nil {
			return nil, usageError{fmt.Errorf("%s: %w", muxSocketEnv, err)}
		}
		c.origin["socket"] = "environment " + muxSocketEnv
	}
	if err := c.override(src, settings[1:]); err != nil {
		return nil, err
	}
	if c.Socket == "" { // its default follows the state directory
		c.Socket = filepath.Join(c.StateDir, "steno.sock")
	}
	return c, nil
}

// override takes what environment and flags give.
func (c *config) override(src sources, of []setting) error {
	for _, s := range of {
		value, origin := src.getenv(s.env()), "environment "+s.env()
		if v, ok := src.flags[s.key]; ok {
			value, origin = v, "flag --"+s.flag()
		} else if value == "" {
			continue
		}
		if err := s.set(c, value); err != nil {
			return usageError{fmt.Errorf("%s: %q: %w", strings.TrimPrefix(strings.TrimPrefix(origin, "flag "), "environment "), value, err)}
		}
		c.origin[s.key] = origin
	}
	return nil
}

// defaults follows the XDG base directories.
func defaults(getenv func(string) string) (*config, error) {
	base := func(name, below string) (string, error) {
		if v := getenv(name); filepath.IsAbs(v) {
			return v, nil
		}
		home := getenv("HOME")
		if home == "" {
			return "", fmt.Errorf("neither %s nor HOME is set", name)
		}
		return filepath.Join(home, below), nil
	}
	state, err := base("XDG_STATE_HOME", ".local/state")
	if err != nil {
		return nil, err
	}
	conf, err := base("XDG_CONFIG_HOME", ".config")
	if err != nil {
		return nil, err
	}
	c := &config{
		home:            getenv("HOME"),
		ConfigFile:      filepath.Join(conf, "steno", "config.toml"),
		StateDir:        filepath.Join(state, "steno"),
		LogLevel:        "info",
		RetentionEvents: 100_000,
		RetentionBytes:  2 << 30,
		Tmux:            "tmux",
		Sweep:           30 * time.Second,
		Throttle:        2 * time.Millisecond,
		WatchBudget:     8192,
		Roots:           map[string][]string{},
		origin:          map[string]string{"roots": "default"},
	}
	if run := getenv("XDG_RUNTIME_DIR"); filepath.IsAbs(run) {
		c.Socket = filepath.Join(run, "steno", "steno.sock")
	}
	for _, s := range settings {
		c.origin[s.key] = "default"
	}
	return c, nil
}

// configFile is the file as it is written. Values are kept as the text that a
// flag would have, so that one function checks them.
type configFile struct {
	StateDir        *string             `toml:"state_dir"`
	Socket          *string             `toml:"socket"`
	LogLevel        *string             `toml:"log_level"`
	RetentionEvents *int64              `toml:"retention_events"`
	RetentionBytes  *textOrNumber       `toml:"retention_bytes"`
	Tmux            *string             `toml:"tmux"`
	TmuxSockets     *[]string           `toml:"tmux_sockets"`
	Sweep           *string             `toml:"sweep"`
	Throttle        *string             `toml:"throttle"`
	WatchBudget     *int64              `toml:"watch_budget"`
	Roots           map[string][]string `toml:"roots"`
}

// textOrNumber accepts "2GiB" and 2147483648 alike.
type textOrNumber string

func (t *textOrNumber) UnmarshalTOML(v any) error {
	switch v := v.(type) {
	case string:
		*t = textOrNumber(v)
	case int64:
		*t = textOrNumber(strconv.FormatInt(v, 10))
	default:
		return errors.New("want a number or a text")
	}
	return nil
}

// texts lists the values that the file has, by key.
func (f *configFile) texts() map[string]string {
	out := map[string]string{}
	for key, v := range map[string]*string{
		"state_dir": f.StateDir, "socket": f.Socket, "log_level": f.LogLevel, "tmux": f.Tmux, "sweep": f.Sweep,
		"throttle": f.Throttle,
	} {
		if v != nil {
			out[key] = *v
		}
	}
	for key, v := range map[string]*int64{"retention_events": f.RetentionEvents, "watch_budget": f.WatchBudget} {
		if v != nil {
			out[key] = strconv.FormatInt(*v, 10)
		}
	}
	if f.RetentionBytes != nil {
		out["retention_bytes"] = string(*f.RetentionBytes)
	}
	if f.TmuxSockets != nil {
		out["tmux_sockets"] = strings.Join(*f.TmuxSockets, ",")
	}
	return out
}

// readFile reads the configuration file. A file that was not asked for by name
// need not exist.
func (c *config) readFile(path string, wanted bool) error {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) && !wanted {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read configuration: %w", err)
	}
	if !info.Mode().IsRegular() || info.Size() > maxConfigFile {
		return fmt.Errorf("read configuration: %s is not a file of at most %d bytes", path, maxConfigFile)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("read configuration: %w", err)
	}
	var file configFile
	meta, err := toml.Decode(string(data), &file)
	if err != nil {
		if bad, ok := errors.AsType[toml.ParseError](err); ok {
			return configError(path, bad.Position.Line, errors.New(clean(bad.Message))) // it quotes the file
		}
		return configError(path, 0, errors.New(clean(err.Error())))
	}
	if unknown := meta.Undecoded(); len(unknown) > 0 {
		return configError(path, keyLine(string(data), unknown[0]), fmt.Errorf("unknown key %q", unknown[0]))
	}
	if file.TmuxSockets != nil && slices.ContainsFunc(*file.TmuxSockets, func(s string) bool { return strings.Contains(s, ",") }) {
		return configError(path, keyLine(string(data), toml.Key{"tmux_sockets"}), errors.New("tmux_sockets: a path with a comma cannot be given"))
	}
	texts := file.texts()
	for _, s := range settings {
		v, ok := texts[s.key]
		if !ok {
			continue
		}
		if s.key == "state_dir" || s.key == "socket" {
			// A file has no working directory to be relative to.
			if v = c.expand(v); !filepath.IsAbs(v) {
				return configError(path, keyLine(string(data), toml.Key{s.key}), fmt.Errorf("%s = %q: want an absolute path", s.key, v))
			}
		}
		if err := s.set(c, v); err != nil {
			return configError(path, keyLine(string(data), toml.Key{s.key}), fmt.Errorf("%s = %q: %w", s.key, v, err))
		}
		c.origin[s.key] = "file"
	}
	known := map[string]bool{}
	for _, p := range allProviders() {
		known[p.ID()] = true
	}
	for _, id := range slices.Sorted(maps.Keys(file.Roots)) {
		line := keyLine(string(data), toml.Key{"roots", id})
		if !known[id] {
			return configError(path, line, fmt.Errorf("roots of unknown agent %q", id))
		}
		for _, dir := range file.Roots[id] {
			if dir = c.expand(dir); !filepath.IsAbs(dir) {
				return configError(path, line, fmt.Errorf("root %q is not an absolute path", dir))
			}
			c.Roots[id] = append(c.Roots[id], filepath.Clean(dir))
		}
		c.origin["roots"] = "file"
	}
	return nil
}

// expand replaces a leading ~/ by the home directory.
func (c *config) expand(path string) string {
	if rest, ok := strings.CutPrefix(path, "~/"); ok {
		return filepath.Join(c.home, rest)
	}
	return path
}

func configError(path string, line int, err error) error {
	if line > 0 {
		return fmt.Errorf("configuration %s, line %d: %w", path, line, err)
	}
	return fmt.Errorf("configuration %s: %w", path, err)
}

// keyLine is the line that a key stands in, 0 when it is not found (it can be
// written in ways that this does not know, such as an inline table).
func keyLine(data string, key toml.Key) int {
	table := ""
	for i, line := range strings.Split(data, "\n") {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "[") {
			table = strings.Trim(strings.Split(line, "#")[0], "[] \t")
			if table == key.String() {
				return i + 1
			}
			continue
		}
		name, _, ok := strings.Cut(line, "=")
		if !ok {
			continue
		}
		name = strings.Trim(strings.TrimSpace(name), `"'`)
		if table != "" {
			name = table + "." + name
		}
		if name == key.String() {
			return i + 1
		}
	}
	return 0
}

// providerEnv is what providers know about this process's surroundings.
func providerEnv(getenv func(string) string) providers.Env {
	return providers.Env{Home: getenv("HOME"), Getenv: getenv}
}
