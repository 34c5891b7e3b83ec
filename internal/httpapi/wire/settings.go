package wire

// Settings are the settings of a server.
type Settings struct {
	Settings []Setting `json:"settings" doc:"all settings, in the order of the reference"`
}

// A Setting is a setting of a server with its value.
type Setting struct {
	Key           string `json:"key" doc:"name in the configuration file"`
	Value         string `json:"value" doc:"value in force, as in the configuration file; empty if it is not set or secret"`
	Default       string `json:"default,omitempty" doc:"value without a configuration"`
	From          string `json:"from" enum:"default,file,environment,flag,program" doc:"source of the value; program: the program that runs the server, such as the demo"`
	Where         string `json:"where,omitempty" doc:"place of the value: file and line, variable or flag"`
	Kind          string `json:"kind" doc:"kind of the value, such as duration"`
	Documentation string `json:"documentation" doc:"meaning of the setting"`
	Secret        bool   `json:"secret,omitempty" doc:"the value contains a password or a token, and is not shown"`
	Set           bool   `json:"set" doc:"the setting has a value"`
}
