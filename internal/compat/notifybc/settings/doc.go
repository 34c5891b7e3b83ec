// Package settings reads the file to which the setting notifybc points: the service that the NotifyBC API serves, its
// address, and the texts and rules that a configuration of NotifyBC contains, under the names that they have there.
//
// Unknown members are errors. The values never change after the start; overrides of one service name, which clients store
// as configurations, are merged over the member subscription with Merge.
package settings
