package document

import (
	"regexp"
	"strings"
	"unicode/utf8"

	"fanfare.dev/fanfare/internal/catalog"
	"fanfare.dev/fanfare/internal/config"
	"fanfare.dev/fanfare/internal/inputerror"
	"fanfare.dev/fanfare/internal/session"
	"fanfare.dev/fanfare/internal/session/frame"
)

// Limits of a worker in a document.
const (
	maxArguments      = 64
	maxArgumentBytes  = 4096
	maxVariables      = 100
	maxVariableBytes  = 4096
	maxActions        = 100
	maxWorkerVersion  = 64
	minMessageLimit   = 1024
	maxWorkerTitle    = 100
	reservedVariables = "FANFARE_"
)

var variablePattern = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,127}$`)

func (p *reader) worker(n node) *WorkerSpec {
	w := &WorkerSpec{}
	w.Concurrency, w.MessageLimit = 1, session.DefaultMessageLimit
	w.StartTimeout, w.StopTimeout = catalog.Duration(session.DefaultStartTimeout), catalog.Duration(session.DefaultStopTimeout)
	n.fields(fieldReaders{
		"title":         func(v node) { w.Title = v.label(maxWorkerTitle) },
		"command":       func(v node) { w.Command = v.command() },
		"environment":   func(v node) { w.Environment = v.environment() },
		"directory":     func(v node) { w.Directory = v.bounded(maxArgumentBytes) },
		"prepare":       func(v node) { w.Prepare = v.command() },
		"release":       func(v node) { w.Release = v.command() },
		"version":       func(v node) { w.Version = v.bounded(maxWorkerVersion) },
		"concurrency":   func(v node) { w.Concurrency = v.number(1, session.MaxConcurrency) },
		"prefetch":      func(v node) { w.Prefetch = v.prefetch() },
		"message_limit": func(v node) { w.MessageLimit = v.messageLimit() },
		"timeout":       func(v node) { w.Timeout = v.duration() },
		"actions":       func(v node) { w.Actions = v.actions() },
		"start_timeout": func(v node) { w.StartTimeout = v.duration() },
		"stop_timeout":  func(v node) { w.StopTimeout = v.duration() },
		"delete":        func(v node) { w.Delete = v.yes() },
	})
	if w.Delete {
		n.alone("delete", true)
		w.WorkerSettings = catalog.WorkerSettings{}
		return w
	}
	if len(w.Command) == 0 {
		for _, field := range []string{"prepare", "release", "directory", "environment"} {
			if n.has(field) {
				n.fault("set command to the program that agents run, or remove "+field, "%s has no effect without command", field)
			}
		}
	}
	return w
}

// command reads a program and its arguments. No shell interprets them.
func (n node) command() (list []string) {
	n.each(func(v node) {
		argument := v.text()
		switch {
		case len(argument) > maxArgumentBytes:
			v.fault("", "the argument has %d bytes; at most %d are allowed", len(argument), maxArgumentBytes)
		case strings.ContainsRune(argument, 0):
			v.fault("", "an argument cannot contain the character NUL")
		}
		list = append(list, argument)
	})
	switch {
	case len(list) > maxArguments:
		n.fault("", "the command has %d arguments; at most %d are allowed", len(list), maxArguments)
	case len(list) == 0 || strings.TrimSpace(list[0]) == "":
		n.fault("write it as a list of the program and its arguments, such as [\"/opt/pricing/worker\", \"--fast\"]", "the command is empty")
	}
	return list
}

func (n node) environment() map[string]string {
	all := map[string]string{}
	n.entries(func(name string, v node) {
		value := v.text()
		switch {
		case !variablePattern.MatchString(name):
			v.fault("use letters, digits and _, not beginning with a digit", "%s is not the name of an environment variable", inputerror.Quote(name))
		case strings.HasPrefix(name, reservedVariables):
			v.fault("choose another name", "%s cannot be set: agents set the variables that begin with %s", inputerror.Quote(name), reservedVariables)
		case len(value) > maxVariableBytes || strings.ContainsRune(value, 0):
			v.fault("", "the value must have at most %d bytes, without the character NUL", maxVariableBytes)
		}
		all[name] = value
	})
	if len(all) > maxVariables {
		n.fault("", "%d variables are set; at most %d are allowed", len(all), maxVariables)
	}
	return all
}

// prefetch reads a number or auto.
func (n node) prefetch() catalog.Prefetch {
	if n.text() == catalog.AutoPrefetch {
		return 0
	}
	before := len(n.p.wrong)
	v := n.number(1, session.MaxPrefetch)
	if len(n.p.wrong) > before {
		n.p.wrong[before].Hint = "use auto, or the number of further tasks that an instance holds per running task"
	}
	return catalog.Prefetch(v)
}

func (n node) messageLimit() catalog.Size {
	text := n.text()
	v, err := config.ParseSize(text)
	switch {
	case err != nil:
		n.fault("write it as 64KiB, 500KB or 1MiB", "%s is not a size", inputerror.Quote(text))
	case v < minMessageLimit || v > session.MaxMessageLimit:
		n.fault("", "the limit must be from %d bytes to %d bytes (1MiB)", minMessageLimit, session.MaxMessageLimit)
	}
	return catalog.Size(v)
}

// actions reads the actions that have their own timeouts.
func (n node) actions() map[string]catalog.WorkerAction {
	all := map[string]catalog.WorkerAction{}
	n.entries(func(name string, v node) {
		if name == "" || len(name) > frame.MaxAction || !utf8.ValidString(name) || strings.ContainsAny(name, "\r\n\x00") {
			v.fault("use at most 64 bytes in one line", "%s is not a valid name of an action", inputerror.Quote(name))
		}
		var action catalog.WorkerAction
		v.fields(fieldReaders{"timeout": func(v node) { action.Timeout = v.duration() }})
		v.needs("timeout", "such as 5m")
		all[name] = action
	})
	if len(all) > maxActions {
		n.fault("", "%d actions are set; at most %d are allowed", len(all), maxActions)
	}
	return all
}
