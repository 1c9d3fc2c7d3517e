Versions, as text and as JSON, also as a global option.

  $ cubinet version
  cubinet 0.1.0
  format 1
  argument layout 1
  templates <HASH1>
  $ cubinet --json version
  {
    "schema": "cubinet.version/1",
    "version": "0.1.0",
    "format": 1,
    "argument_layout": 1,
    "template_digest": "<HASH1>"
  }
  $ cubinet version --json
  {
    "schema": "cubinet.version/1",
    "version": "0.1.0",
    "format": 1,
    "argument_layout": 1,
    "template_digest": "<HASH1>"
  }
  $ cubinet --version
  cubinet 0.1.0
  format 1
  argument layout 1
  templates <HASH1>

Options may stand on either side of the verb.

  $ cubinet --json --quiet version --json
  {
    "schema": "cubinet.version/1",
    "version": "0.1.0",
    "format": 1,
    "argument_layout": 1,
    "template_digest": "<HASH1>"
  }

A full disk is an error.

  $ cubinet version > /dev/full
  ! cubinet: version: cannot write to standard output: No space left on device
  [1]
