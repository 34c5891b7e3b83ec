// Package session is the Go client of Fanfare's sessions: a session sends many requests to the instances of a worker and
// returns their responses.
//
//	c, err := client.New("http://127.0.0.1:8085", key)
//	s, err := session.Open(ctx, c, session.Options{Worker: "pricing"})
//	cl, err := s.Client(ctx, "risk")
//	for _, trade := range trades {
//		_, err = cl.Send(ctx, trade) // buffered; waits only if the broker has too many
//	}
//	err = cl.End(ctx)
//	for r, err := range cl.Responses(ctx) {
//		...
//	}
//	err = s.Close(ctx, false)
//
// A Client is a named stream of requests and one of responses. If its connection is lost, it connects again, repeats the
// requests that the broker has not confirmed, with the same numbers, and continues after the last response that it
// received. The application therefore gets each response exactly once per process. A process that attaches to the session
// later continues after the last response that was confirmed, or at a number of its choice (From).
//
// An error that a new connection cannot resolve (the session has ended, the key was revoked, another process uses the name) is
// permanent: all calls return it.
package session
