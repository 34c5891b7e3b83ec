// Package worker runs a function for the requests of Fanfare's sessions. A program that calls Run is an instance of a worker:
//
//	func main() {
//		err := worker.Run(context.Background(), worker.Options{}, func(ctx context.Context, t *worker.Task) ([]byte, error) {
//			return bytes.ToUpper(t.Body), nil
//		})
//		if err != nil {
//			log.Fatal(err)
//		}
//	}
//
// The options come from the environment (FANFARE_URL, FANFARE_KEY, FANFARE_SERVICE, FANFARE_WORKER, FANFARE_INSTANCE), which
// an agent sets. Run connects again when its connection is lost: after 1 s, doubling to 60 s. The broker then runs the tasks
// of the lost connection again, on this or another instance: a function must tolerate that, unless the session is
// at-most-once.
//
// If the function returns an error, the response to the request is a fault. Retry requests another attempt. After a panic,
// the response is a fault with a stack trace.
package worker
