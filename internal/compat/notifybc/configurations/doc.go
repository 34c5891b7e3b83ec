// Package configurations has the configurations of the NotifyBC API: values by name and service name that clients store.
//
// A configuration named subscription changes the texts, codes and answers of one service name over those of the settings file. A
// configuration named notification is stored; RSS feeds in it are refused, and so is rsa.
//
// # State and failure
//
// [Configurations] holds the merged settings of all service names in memory, for the handlers of requests. A change of this server
// applies immediately, and one of another server within 30 seconds. While the database is away, the last settings apply.
package configurations
