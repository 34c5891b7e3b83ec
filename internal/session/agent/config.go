package agent

import (
	"errors"
	"os"
	"os/user"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/inputerror"
)

// A Config is the local file of an agent. It decides alone what the agent may run: the server cannot extend it.
type Config struct {
	Name          string `yaml:"name"`            // of the agent; the default is the host name
	Server        string `yaml:"server"`          // URL
	KeyFile       string `yaml:"key_file"`        // the agent's key
	WorkerKeyFile string `yaml:"worker_key_file"` // the key that instances get; the default is the agent's key
	MaxInstances  int    `yaml:"max_instances"`   // of all workers; the default is the number of cores
	Workers       []Rule `yaml:"workers"`

	folder string // of the file
}

// A Rule allows the agent to run one worker.
type Rule struct {
	Service      string     `yaml:"service"`
	Worker       string     `yaml:"worker"`
	Commands     [][]string `yaml:"commands"`      // allowed exactly as they are
	Programs     [][]string `yaml:"programs"`      // allowed with any further arguments
	Directories  []string   `yaml:"directories"`   // where commands may run, with the folders below
	User         string     `yaml:"user"`          // that runs the commands; the default is the user of the agent
	Environment  []string   `yaml:"environment"`   // names of variables that a definition may set; * at the end allows any ending
	MaxInstances int        `yaml:"max_instances"` // the default is that of the agent
	MemoryLimit  string     `yaml:"memory_limit"`  // of one process, such as 512MiB; only on Linux

	memory int64
	run    *identity
}

// An identity is the user that runs a command, if it is not that of the agent.
type identity struct {
	name, home string
	uid, gid   uint32
	groups     []uint32
}

const maxAgentName = 48 // leaves space for the number of an instance in a name of 64 characters

var nameForm = regexp.MustCompile(`^[A-Za-z0-9_.-]+$`)

// Load reads and checks the file of an agent. Relative paths of key files begin at the folder of the file.
func Load(path string) (*Config, error) {
	info, err := os.Stat(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, &fanfare.Error{Code: fanfare.Invalid, File: path, Message: "the file does not exist", Hint: "docs/how-to/run-workers.md contains an example of an agent file; specify your file with --config"}
	}
	if err != nil {
		return nil, &fanfare.Error{Code: fanfare.Invalid, File: path, Message: err.Error(), Hint: "specify a file that this user can read"}
	}
	if runtime.GOOS != "windows" && info.Mode().Perm()&0o002 != 0 {
		return nil, &fanfare.Error{Code: fanfare.Invalid, File: path, Message: "every user of this machine can change the file", Hint: "run: chmod o-w " + path}
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, &fanfare.Error{Code: fanfare.Invalid, File: path, Message: err.Error(), Hint: "specify a file that this user can read"}
	}
	var c Config
	if err := yaml.UnmarshalWithOptions(text, &c, yaml.Strict()); err != nil {
		wrong := &fanfare.Error{Code: fanfare.Invalid, File: path, Message: strings.TrimSpace(yaml.FormatError(err, false, false)), Hint: "docs/how-to/run-workers.md lists the fields"}
		var syntax yaml.Error
		if errors.As(err, &syntax) {
			wrong.Message = syntax.GetMessage()
			if token := syntax.GetToken(); token != nil {
				wrong.Line, wrong.Column = token.Position.Line, token.Position.Column
			}
		}
		return nil, wrong
	}
	c.folder = filepath.Dir(path)
	if err := c.check(); err != nil {
		err.File = path
		return nil, err
	}
	return &c, nil
}

// check completes the defaults and refuses what cannot work.
func (c *Config) check() *fanfare.Error {
	if c.Name == "" {
		host, err := os.Hostname()
		if err != nil {
			return inputerror.Invalid("/name", "give the agent a name", "the host has no name: %v", err)
		}
		c.Name = host[:min(len(host), maxAgentName)]
	}
	if len(c.Name) > maxAgentName || !nameForm.MatchString(c.Name) {
		return inputerror.Invalid("/name", "use 1 to 48 letters, digits, -, _ and .", "the name %s is not valid", inputerror.Quote(c.Name))
	}
	if c.MaxInstances == 0 {
		c.MaxInstances = runtime.NumCPU()
	}
	if c.MaxInstances < 0 {
		return inputerror.Invalid("/max_instances", "use 1 or more", "%d is not a number of instances", c.MaxInstances)
	}
	if len(c.Workers) == 0 {
		return inputerror.Invalid("/workers", "list at least one worker with its service and commands", "the file does not allow any worker")
	}
	seen := map[[2]string]bool{}
	for i := range c.Workers {
		r := &c.Workers[i]
		at := "/workers/" + strconv.Itoa(i)
		if err := r.check(c.MaxInstances); err != nil {
			err.Pointer = at + err.Pointer
			return err
		}
		if seen[[2]string{r.Service, r.Worker}] {
			return inputerror.Invalid(at, "merge the two entries", "worker %s of service %s is listed twice", r.Worker, r.Service)
		}
		seen[[2]string{r.Service, r.Worker}] = true
	}
	return nil
}

func (r *Rule) check(most int) *fanfare.Error {
	if !nameForm.MatchString(r.Service) {
		return inputerror.Invalid("/service", "name the service of the worker", "%s is not the name of a service", inputerror.Quote(r.Service))
	}
	if !nameForm.MatchString(r.Worker) {
		return inputerror.Invalid("/worker", "name a worker of the service", "%s is not the name of a worker", inputerror.Quote(r.Worker))
	}
	if len(r.Commands)+len(r.Programs) == 0 {
		return inputerror.Invalid("/commands", "list the commands that the agent may run, or programs with their first arguments", "worker %s has no allowed command", r.Worker)
	}
	for field, lists := range map[string][][]string{"/commands/": r.Commands, "/programs/": r.Programs} {
		for i, argv := range lists {
			if len(argv) == 0 || !filepath.IsAbs(argv[0]) {
				return inputerror.Invalid(field+strconv.Itoa(i), "begin with the absolute path of a program, such as [/usr/bin/python3, /opt/render/worker.py]", "the command does not begin with an absolute path")
			}
		}
	}
	for i, folder := range r.Directories {
		if !filepath.IsAbs(folder) {
			return inputerror.Invalid("/directories/"+strconv.Itoa(i), "use an absolute path", "%s is not an absolute path", inputerror.Quote(folder))
		}
	}
	for i, name := range r.Environment {
		if name == "" || strings.ContainsAny(name, "= ") || strings.HasPrefix(name, "FANFARE_") || strings.HasPrefix("FANFARE_", strings.TrimSuffix(name, "*")) && strings.HasSuffix(name, "*") {
			return inputerror.Invalid("/environment/"+strconv.Itoa(i), "use a name such as LANG or RENDER_*; the agent itself sets FANFARE_*", "%s is not the name of a variable that a worker may have", inputerror.Quote(name))
		}
	}
	switch {
	case r.MaxInstances == 0:
		r.MaxInstances = most
	case r.MaxInstances < 0:
		return inputerror.Invalid("/max_instances", "use 1 or more", "%d is not a number of instances", r.MaxInstances)
	}
	if r.MemoryLimit != "" {
		size, err := parseSize(r.MemoryLimit)
		if err != nil {
			return err
		}
		if runtime.GOOS != "linux" {
			return inputerror.Invalid("/memory_limit", "remove the limit", "the agent can limit memory only on Linux")
		}
		r.memory = size
	}
	return r.findUser()
}

// findUser refuses to run commands as root unless the file says so, and as another user unless the agent is root.
func (r *Rule) findUser() *fanfare.Error {
	root := os.Geteuid() == 0
	if r.User == "" {
		if root {
			return inputerror.Invalid("/user", "set user to the user that runs the commands of this worker, or to root", "the agent runs as root, but worker %s has no user", r.Worker)
		}
		return nil
	}
	u, err := user.Lookup(r.User)
	if err != nil {
		return inputerror.Invalid("/user", "create the user, or specify another one", "user %s does not exist", inputerror.Quote(r.User))
	}
	uid, wrong := strconv.ParseUint(u.Uid, 10, 32)
	gid, wrongGroup := strconv.ParseUint(u.Gid, 10, 32)
	if wrong != nil || wrongGroup != nil {
		return inputerror.Invalid("/user", "remove the user", "the agent cannot run commands as another user on this system")
	}
	if !root {
		if int(uid) == os.Geteuid() {
			return nil
		}
		return inputerror.Invalid("/user", "run the agent as root or as "+r.User+", or remove the user", "an agent that does not run as root cannot run commands as user %s", r.User)
	}
	run := &identity{u.Username, u.HomeDir, uint32(uid), uint32(gid), nil}
	ids, err := u.GroupIds()
	if err != nil {
		return inputerror.Invalid("/user", "check the groups of the user", "the groups of user %s cannot be read: %v", r.User, err)
	}
	for _, id := range ids {
		if n, err := strconv.ParseUint(id, 10, 32); err == nil {
			run.groups = append(run.groups, uint32(n))
		}
	}
	r.run = run
	return nil
}

func parseSize(text string) (int64, *fanfare.Error) {
	digits := strings.TrimRight(text, "KMGiB")
	factor, known := map[string]int64{"": 1, "B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}[text[len(digits):]]
	n, err := strconv.ParseInt(digits, 10, 32)
	if err != nil || !known || n <= 0 {
		return 0, inputerror.Invalid("/memory_limit", "write a whole number with a unit, such as 512MiB or 2GiB", "%s is not a size", inputerror.Quote(text))
	}
	return n * factor, nil
}

// ReadKeys returns the key of the agent and the key of its instances. The key in the environment is used if the file names
// none.
func (c *Config) ReadKeys(environment string) (agent, worker string, err error) {
	agent = environment
	if c.KeyFile != "" {
		if agent, err = c.readKey(c.KeyFile); err != nil {
			return "", "", err
		}
	}
	if agent == "" {
		return "", "", &fanfare.Error{Code: fanfare.Unauthenticated, Message: "the agent has no API key", Hint: "create one with `fanfare key create` and specify its file with --key-file or key_file, or set FANFARE_KEY"}
	}
	worker = agent
	if c.WorkerKeyFile != "" {
		worker, err = c.readKey(c.WorkerKeyFile)
	}
	return agent, worker, err
}

func (c *Config) readKey(path string) (string, error) {
	if !filepath.IsAbs(path) {
		path = filepath.Join(c.folder, path)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return "", &fanfare.Error{Code: fanfare.Unauthenticated, Message: "the key file cannot be read: " + err.Error(), Hint: "write the key into the file, readable only by the user of the agent"}
	}
	key := strings.TrimSpace(string(b))
	if key == "" || strings.ContainsAny(key, " \n\t") {
		return "", &fanfare.Error{Code: fanfare.Unauthenticated, File: path, Message: "the file must contain exactly one key", Hint: "write only the key into the file"}
	}
	return key, nil
}
