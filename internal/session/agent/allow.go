package agent

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"fanfare.dev/fanfare/internal/inputerror"
	"fanfare.dev/fanfare/internal/session"
	"fanfare.dev/fanfare/internal/session/agentmessage"
)

// A launch is an allowed definition: all that is needed to start its instances.
type launch struct {
	rule                      *Rule
	digest, version           string
	command, prepare, release []string
	directory                 string
	environment               []string
	startTimeout, stopTimeout time.Duration

	step      string // of the host: "", preparing, ready or releasing
	failures  int    // of prepare, consecutive
	notBefore time.Time
}

// The steps of a launch.
const (
	unprepared = ""
	preparing  = "preparing"
	ready      = "ready"
	releasing  = "releasing"
)

// allow checks a definition against a rule.
func (r *Rule) allow(d *agentmessage.Definition, at time.Time) (*launch, *agentmessage.Refusal) {
	refuse := func(pointer, hint, format string, args ...any) (*launch, *agentmessage.Refusal) {
		return nil, &agentmessage.Refusal{Definition: d.Digest(), Pointer: pointer, Message: fmt.Sprintf(format, args...), Hint: hint, At: at}
	}
	if len(r.Commands)+len(r.Programs) == 0 {
		return refuse("", "add the worker to `workers` in the agent's file", "the agent's file does not list worker %s of service %s", r.Worker, r.Service)
	}
	l := &launch{rule: r, digest: d.Digest(), version: d.Version, command: d.Command, prepare: d.Prepare, release: d.Release}
	for _, c := range []struct {
		field string
		argv  []string
	}{{"command", d.Command}, {"prepare", d.Prepare}, {"release", d.Release}} {
		if c.field != "command" && len(c.argv) == 0 {
			continue
		}
		if !r.allowsCommand(c.argv) {
			return refuse("/"+c.field, "change the definition, or add the command to `commands` in the agent's file", "the agent's file does not allow the %s %s with the given arguments (%d)", c.field, inputerror.Quote(programOf(c.argv)), max(0, len(c.argv)-1))
		}
		if i := slices.IndexFunc(c.argv, func(s string) bool { return strings.ContainsRune(s, 0) }); i >= 0 {
			return refuse("/"+c.field, "remove it", "an argument of the %s contains a zero byte", c.field)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(d.Environment)) {
		if !r.allowsVariable(name) {
			return refuse("/environment/"+name, "remove the variable, or add it to `environment` in the agent's file", "the agent's file does not allow the variable %s", inputerror.Quote(name))
		}
		if strings.ContainsRune(d.Environment[name], 0) {
			return refuse("/environment/"+name, "remove it", "the variable contains a zero byte")
		}
		l.environment = append(l.environment, name+"="+d.Environment[name])
	}
	directory, allowed := r.directory(d.Directory)
	if !allowed {
		return refuse("/directory", "change the definition, or create the folder and add it to `directories` in the agent's file", "the agent's file does not allow the folder %s, or the folder does not exist", inputerror.Quote(d.Directory))
	}
	l.directory = directory
	l.setTimeouts(d)
	return l, nil
}

// programOf returns the program of a command. Arguments are not shown, because they may contain secrets.
func programOf(argv []string) string {
	if len(argv) == 0 {
		return ""
	}
	return argv[0]
}

func (l *launch) setTimeouts(d *agentmessage.Definition) {
	seconds := func(s float64, preset time.Duration) time.Duration {
		if s <= 0 || s > 86400 {
			return preset
		}
		return time.Duration(s * float64(time.Second))
	}
	l.startTimeout, l.stopTimeout = seconds(d.StartTimeout, session.DefaultStartTimeout), seconds(d.StopTimeout, session.DefaultStopTimeout)
}

func (r *Rule) allowsCommand(argv []string) bool {
	if len(argv) == 0 {
		return false
	}
	return slices.ContainsFunc(r.Commands, func(allowed []string) bool { return slices.Equal(allowed, argv) }) ||
		slices.ContainsFunc(r.Programs, func(allowed []string) bool {
			return len(argv) >= len(allowed) && slices.Equal(allowed, argv[:len(allowed)])
		})
}

func (r *Rule) allowsVariable(name string) bool {
	if name == "" || strings.ContainsAny(name, "=\x00") || strings.HasPrefix(name, "FANFARE_") {
		return false
	}
	return slices.ContainsFunc(r.Environment, func(allowed string) bool {
		if prefix, open := strings.CutSuffix(allowed, "*"); open {
			return strings.HasPrefix(name, prefix)
		}
		return name == allowed
	})
}

// directory returns the real path of the folder in which a command runs. Symbolic links are followed before the comparison,
// so that a link in an allowed folder cannot lead out of it.
func (r *Rule) directory(wanted string) (string, bool) {
	if wanted == "" {
		if len(r.Directories) == 0 {
			return "", true // that of the agent
		}
		wanted = r.Directories[0]
	}
	if !filepath.IsAbs(wanted) {
		return "", false
	}
	resolved, err := filepath.EvalSymlinks(wanted)
	if err != nil {
		return "", false
	}
	if info, err := os.Stat(resolved); err != nil || !info.IsDir() {
		return "", false
	}
	return resolved, slices.ContainsFunc(r.Directories, func(allowed string) bool {
		root, err := filepath.EvalSymlinks(allowed)
		if err != nil {
			return false
		}
		below, err := filepath.Rel(root, resolved)
		return err == nil && below != ".." && !strings.HasPrefix(below, ".."+string(filepath.Separator))
	})
}
