package main

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/url"
	"strings"

	"github.com/spf13/cobra"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/client"
	"fanfare.dev/fanfare/internal/session"
	"fanfare.dev/fanfare/internal/session/agent"
	"fanfare.dev/fanfare/internal/session/frame"
	"fanfare.dev/fanfare/internal/session/websocket"
)

// workersCommand runs an agent until its context ends.
func (c *cli) workersCommand() *cobra.Command {
	var path, keyFile, name string
	var jsonLog bool
	command := &cobra.Command{
		Use: "workers", Short: "Run an agent that starts the instances of workers on this machine",
		Long: `Run an agent. It connects to the server, which determines how many instances of which
workers to run. The agent starts these instances, restarts them after a failure,
replaces them when the version of a worker changes, and lets them finish their tasks
before they stop. Only the local file determines what the agent may run: it lists the
workers and, for each worker, the exact commands, folders, variables and user. The agent
refuses everything else. On SIGTERM or Ctrl-C, the agent drains its instances and exits.
It prints the output of the instances, each line with the name of its instance.`,
		Example: `  fanfare workers --config /etc/fanfare/agent.yaml
  fanfare workers --config agent.yaml --server https://news.example.org --key-file agent.key`,
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			config, err := agent.Load(path)
			if err != nil {
				return err
			}
			if keyFile != "" {
				config.KeyFile = absolute(keyFile)
			}
			if name != "" {
				config.Name = name
			}
			handler := slog.Handler(slog.NewTextHandler(c.err, nil))
			if jsonLog {
				handler = slog.NewJSONHandler(c.err, nil)
			}
			return c.runAgent(command.Context(), config, slog.New(handler))
		},
	}
	f := command.Flags()
	f.StringVar(&path, "config", "agent.yaml", "file that specifies what the agent may run")
	f.StringVar(&keyFile, "key-file", "", "file with the API key of the agent (default: key_file in the configuration, or FANFARE_KEY)")
	f.StringVar(&name, "name", "", "name of the agent (default: name in the configuration, or the host name)")
	f.BoolVar(&jsonLog, "log-json", false, "write the log as JSON")
	return command
}

func (c *cli) runAgent(ctx context.Context, config *agent.Config, log *slog.Logger) error {
	key, workerKey, err := config.ReadKeys(c.setting(c.key, "FANFARE_KEY", ""))
	if err != nil {
		return err
	}
	server := c.setting(c.server, "FANFARE_SERVER", config.Server)
	if server == "" {
		server = defaultServer
	}
	if _, err := client.New(server, key); err != nil { // checks the URL
		return err
	}
	a, err := agent.New(agent.Options{Config: config, URL: server, WorkerKey: workerKey, Version: version, Output: c.out, Logger: log,
		Dial: func(ctx context.Context) (session.Conn, error) {
			return dialAgent(ctx, strings.TrimRight(server, "/"), c.setting(c.service, "FANFARE_SERVICE", ""), key, config.Name)
		}})
	if err != nil {
		return err
	}
	return a.Run(ctx)
}

// dialAgent opens the connection of an agent. An answer that refuses it becomes the error that the server made.
func dialAgent(ctx context.Context, server, service, key, name string) (session.Conn, error) {
	header := http.Header{"Authorization": {"Bearer " + key}}
	if service != "" {
		header.Set("X-Fanfare-Service", service)
	}
	conn, err := websocket.Dial(ctx, server+"/v1/agents/"+url.PathEscape(name)+"/stream", header, frame.AgentProtocol, nil)
	if err == nil {
		return conn, nil
	}
	refusal, refused := errors.AsType[*websocket.Refusal](err)
	if !refused {
		return nil, &client.Unreachable{Server: server, Err: err}
	}
	var problem struct {
		Code   fanfare.Code `json:"code"`
		Detail string       `json:"detail"`
		Title  string       `json:"title"`
		Hint   string       `json:"hint"`
	}
	if json.Unmarshal(refusal.Body, &problem) != nil || problem.Code == "" {
		return nil, &fanfare.Error{Code: fanfare.Unavailable, Message: refusal.Error(), Hint: "check the URL; it may belong to a proxy or another program"}
	}
	if problem.Detail == "" {
		problem.Detail = problem.Title
	}
	return nil, &fanfare.Error{Code: problem.Code, Message: problem.Detail, Hint: problem.Hint}
}
