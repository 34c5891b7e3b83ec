// Package workers describes the workers of services, their sessions and the agents that start them, for the API, the status
// and metrics.
package workers

import (
	"cmp"
	"encoding/json"
	"slices"

	"fanfare.dev/fanfare/internal/catalog"
	"fanfare.dev/fanfare/internal/httpapi/wire"
	"fanfare.dev/fanfare/internal/session"
	"fanfare.dev/fanfare/internal/session/fleet"
)

// Agents adapts the hub of agents to the API.
type Agents struct{ *fleet.Hub }

// Agents lists the agents that may run workers of a service.
func (a Agents) Agents(service string) []wire.Agent {
	list := []wire.Agent{}
	for _, g := range a.Hub.Agents(service) {
		one := wire.Agent{Name: g.Name, Service: g.Service, Remote: g.Remote, Host: g.Host, Version: g.Version, Cores: g.Cores, MaxInstances: g.MaxInstances, Stopping: g.Stopping, ConnectedAt: g.ConnectedAt, Workers: []wire.AgentWorker{}}
		b, err := json.Marshal(g.Workers)
		if err == nil {
			err = json.Unmarshal(b, &one.Workers)
		}
		if err != nil {
			panic(err) // both types are part of this program
		}
		list = append(list, one)
	}
	slices.SortFunc(list, func(x, y wire.Agent) int {
		return cmp.Or(cmp.Compare(x.Name, y.Name), cmp.Compare(x.Service, y.Service))
	})
	return list
}

// A Report reports the workers that have sessions or instances.
type Report struct {
	Services interface{ Configuration() catalog.Configuration }
	Broker   interface {
		Demand() []session.Demand
		Workers(service string) []session.WorkerInfo
	}
}

// Status lists the workers that have sessions or instances.
func (r Report) Status() (list []wire.WorkerStatus) {
	wanted := map[[2]string]int{}
	for _, d := range r.Broker.Demand() {
		wanted[[2]string{d.Service, d.Worker}] = d.Instances
	}
	for _, s := range r.Services.Configuration().Services() {
		for _, w := range r.Broker.Workers(s.Name) {
			if n := wanted[[2]string{s.Name, w.Name}]; w.Sessions+len(w.Instances)+n > 0 {
				list = append(list, wire.WorkerStatus{Service: s.Name, Name: w.Name, Sessions: w.Sessions, Queued: w.Queued, Running: w.Running, Instances: len(w.Instances), Wanted: n})
			}
		}
	}
	return list
}
