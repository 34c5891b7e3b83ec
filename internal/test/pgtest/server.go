package pgtest

import "testing"

// A Server is one of the test's own, which may be killed. Its methods end the
// test where they fail, and are called by one goroutine at a time.
type Server struct {
	URL string // of an empty database whose owner may create others

	t       testing.TB
	cluster *Cluster
}

// Start runs a server until the test ends. Settings have the form "fsync=off" (see Quick). Without settings, committed
// data survives a loss of power.
func Start(t testing.TB, settings ...string) *Server {
	t.Helper()
	c, err := Launch(settings...)
	return serve(t, c, err)
}

// StartIn is Start at another place.
func StartIn(t testing.TB, at Place, settings ...string) *Server {
	t.Helper()
	c := &Cluster{settings: settings, place: at}
	return serve(t, c, c.launch(c.create))
}

// serve has a server that was launched end with the test.
func serve(t testing.TB, c *Cluster, err error) *Server {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("PostgreSQL's log:\n%s", c.Log())
		}
		if err := c.Close(); err != nil {
			t.Errorf("end PostgreSQL: %v", err)
		}
	})
	return &Server{c.URL, t, c}
}

// Database is Database on this server, which must run when the test ends.
func (s *Server) Database() string {
	s.t.Helper()
	return databaseOn(s.t, s.URL)
}

// Template makes the template of this server.
func (s *Server) Template(fill func(at string) error) (name string, err error) {
	return s.cluster.Template(fill)
}

// Superuser returns the URL at which the superuser connects to a database of the server.
func (s *Server) Superuser(database string) string { return s.cluster.Superuser(database) }

// Data returns the directory of the data.
func (s *Server) Data() string { return s.cluster.data() }

// Kill ends the server as a crash does.
func (s *Server) Kill() {
	s.t.Helper()
	s.must(s.cluster.Kill())
}

// Stop shuts the server down cleanly and closes its connections.
func (s *Server) Stop() {
	s.t.Helper()
	s.must(s.cluster.Stop())
}

// Freeze has the server accept connections and answer nothing, until Thaw.
func (s *Server) Freeze() {
	s.t.Helper()
	s.must(s.cluster.Freeze())
}

// FreezeFirst has the server answer no new connection, until Thaw.
func (s *Server) FreezeFirst() {
	s.t.Helper()
	s.must(s.cluster.FreezeFirst())
}

// Thaw lets a frozen server go on.
func (s *Server) Thaw() {
	s.t.Helper()
	s.must(s.cluster.Thaw())
}

// Restart starts the server again, and returns when it can be connected to.
func (s *Server) Restart() {
	s.t.Helper()
	s.must(s.cluster.Restart())
}

// Terminate ends all connections to the server's databases, as an operator can.
func (s *Server) Terminate() {
	s.t.Helper()
	s.must(execute(s.URL, terminate))
}

// Running reports whether the server was started and has not ended.
func (s *Server) Running() bool { return s.cluster.running() }

// Revive starts the server again if it has ended by itself, and reports whether it had. If
// the server ends as it starts, the next call tries again.
func (s *Server) Revive() (ended bool, err error) {
	c := s.cluster
	if c.process == nil || !c.process.ended() {
		return false, nil
	}
	c.process = nil
	return true, c.Restart()
}

func (s *Server) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatalf("%v\n%s", err, s.cluster.Log())
	}
}
