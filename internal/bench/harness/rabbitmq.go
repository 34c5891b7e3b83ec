package harness

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
)

// rabbitServer is where Debian installs the program that runs as the calling user; the program
// of the same name in PATH changes to a user of its own.
const rabbitServer = "/usr/lib/rabbitmq/bin/rabbitmq-server"

// RabbitMQ is a RabbitMQ server with its default settings, on the loopback interface.
type RabbitMQ struct {
	URL    string
	server *Process
	names  *Process // Erlang's directory of node names
}

// HasRabbitMQ reports whether a RabbitMQ server is installed.
func HasRabbitMQ() bool {
	_, err := exec.LookPath(rabbitServer)
	return err == nil
}

// StartRabbitMQ starts a RabbitMQ server whose files are in the folder of the run.
func (l *Env) StartRabbitMQ() (*RabbitMQ, error) {
	var ports [3]string // of AMQP, of Erlang's directory of names, and of its nodes
	var addr string
	for i := range ports {
		free, err := freeAddress(l.Ctx)
		if err != nil {
			return nil, err
		}
		if i == 0 {
			addr = free
		}
		if _, ports[i], err = net.SplitHostPort(free); err != nil {
			return nil, err
		}
	}
	dir := l.File(fmt.Sprintf("rabbitmq-%s", ports[0]))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	if err := os.WriteFile(dir+"/rabbitmq.conf", []byte("listeners.tcp.1 = "+addr+"\n"), 0o600); err != nil {
		return nil, err
	}
	names, err := l.Spawn("epmd", nil, "epmd", "-port", ports[1], "-address", "127.0.0.1")
	if err != nil {
		return nil, err
	}
	env := []string{
		"HOME=" + dir, "RABBITMQ_NODENAME=bench-" + ports[0] + "@localhost",
		"RABBITMQ_CONFIG_FILE=" + dir + "/rabbitmq.conf", "RABBITMQ_CONF_ENV_FILE=/dev/null", "RABBITMQ_ENABLED_PLUGINS_FILE=" + dir + "/plugins",
		"RABBITMQ_MNESIA_BASE=" + dir, "RABBITMQ_LOG_BASE=" + dir, "RABBITMQ_PID_FILE=" + dir + "/pid",
		"RABBITMQ_DIST_PORT=" + ports[2], "ERL_EPMD_PORT=" + ports[1],
		"RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS=-kernel inet_dist_use_interface {127,0,0,1}",
		"RABBITMQ_ALLOW_INPUT=1", // the server ends with its input
	}
	server, err := l.Spawn("rabbitmq", env, rabbitServer)
	if err != nil {
		return nil, errors.Join(err, names.Stop())
	}
	q := &RabbitMQ{URL: "amqp://guest:guest@" + addr + "/", server: server, names: names}
	if err := awaitRabbitMQ(l.Ctx, addr); err != nil {
		return nil, errors.Join(server.WithLog(err), q.Stop())
	}
	return q, nil
}

// awaitRabbitMQ waits for a listener; the server starts for several seconds before it listens.
func awaitRabbitMQ(ctx context.Context, addr string) (err error) {
	for range 12 {
		if err = AwaitListener(ctx, addr); err == nil || ctx.Err() != nil {
			return err
		}
	}
	return err
}

// Stop ends the server. Its data is not needed again, so that the way it ends does not matter.
func (q *RabbitMQ) Stop() error {
	_ = q.server.Wait() // its shell reports the end of its input as an error
	_ = q.names.cmd.Process.Kill()
	_ = q.names.Wait() // it was killed
	return nil
}
