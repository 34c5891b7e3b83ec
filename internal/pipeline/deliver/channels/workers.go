package channels

import (
	"context"
	"errors"

	"fanfare.dev/fanfare/internal/catalog"
	"fanfare.dev/fanfare/internal/pipeline/deliver"
	"fanfare.dev/fanfare/internal/pipeline/deliver/driver"
	"fanfare.dev/fanfare/internal/pipeline/deliver/worker"
)

// errNoBroker is the error of a channel on a server that has no broker.
var errNoBroker = errors.New("this server does not run the broker of workers")

// worker creates the driver of a channel whose worker delivers.
func (c *Channels) worker(conf *catalog.Channel, s *deliver.Settings) driver.Driver {
	workers := c.parts.Workers
	if workers == nil {
		return brokenDriver{errNoBroker}
	}
	return worker.New(worker.Config{
		Service: conf.Service, Channel: conf.Name, Worker: conf.Worker, Documents: conf.SendsDocuments(),
		Batch: conf.Batch, MaxBytes: workers.MessageLimit(conf.Service, conf.Worker), Timeout: s.SendTimeout,
		Ready: func() error { return workers.Start(conf.Service, conf.Worker) },
		Call: func(ctx context.Context, request []byte) ([]byte, error) {
			return workers.Call(ctx, conf.Service, conf.Worker, conf.Name, request)
		},
	})
}
