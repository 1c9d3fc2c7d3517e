Standard streams that are closed or full. What a verb opens must not land on their numbers, and what it could not say
must not pass for said: exit 1, in text and in JSON.

  $ echo '{"schema": "cubinet.manifest/1", "shapes": [{"op": "fp8_quantize", "layer": "x", "n": 1, "k": 128}]}' > m.json
  > export CUBINET_NVRTC=$FAKE/libnvrtc_stub.so
  > cubinet --cache D warm --quiet --manifest m.json --arch sm_90a > text
  > cat > verbs <<'END'
  > ls
  > stats
  > stats --prometheus
  > verify
  > verify --repair
  > prune --all --dry-run
  > check --manifest m.json --arch sm_90a
  > warm --manifest m.json --arch sm_90a
  > warm --manifest m.json --arch sm_90a --pin
  > pin --manifest m.json --arch sm_90a
  > unpin --manifest m.json --arch sm_90a
  > explain --op fp8_quantize --t 1 --k 128 --arch sm_90a
  > matrix --op fp8_quantize --m 1 --k 128 --arch sm_90a
  > doctor
  > config
  > version
  > help
  > help --man
  > help --completion bash
  > --help
  > --version
  > END
  > while read -r verb; do for form in '' --json; do
  >   case "$verb $form" in *prometheus*json) continue;; esac
  >   sh -c "exec cubinet --cache D $form $verb >&- 2>&-"; echo "$? $verb $form: stdout, stderr closed"
  >   sh -c "exec cubinet --cache D $form $verb <&- >&- 2>&-"; echo "$? $verb $form: all closed"
  >   sh -c "exec cubinet --cache D $form $verb >&- 2>error"; echo "$? $verb $form: stdout closed"
  >   grep -c 'cannot write to standard output: Bad file descriptor' error
  >   cubinet --cache D $form $verb > /dev/full 2>error; echo "$? $verb $form: full disk"
  >   grep -c 'cannot write to standard output' error
  > done; done < verbs > seen; grep -v ': ' seen | sort | uniq -c | sed 's/^ *//'; grep ': ' seen | grep -v '^1 '
  > cubinet --cache D verify
  82 1
  checked 1, damaged 0, repaired 0
  $ head -n 4 seen; grep -c ': ' seen
  1 ls : stdout, stderr closed
  1 ls : all closed
  1 ls : stdout closed
  1
  164

A reader that went away is told, and kills nothing.

  $ for verb in version '--json version' 'help --man' '--json ls'; do
  >   mkfifo pipe; (exec 3< pipe; exec 3<&-; : > closed) & exec 4> pipe; wait; (cubinet --cache D $verb --quiet >&4); echo "exit $?"; rm pipe
  > done
  exit 1
  exit 1
  exit 1
  exit 1
  ! cubinet: version: cannot write to standard output: Broken pipe
  ! cubinet: version: cannot write to standard output: Broken pipe
  ! cubinet: help: cannot write to standard output: Broken pipe
  ! cubinet: ls: cannot write to standard output: Broken pipe

With only stdin and stderr closed a verb works as ever, builds included: its child's streams are its own.

  $ sh -c 'exec cubinet --cache E warm --manifest m.json --arch sm_90a <&- 2>&-' | sed -n 3p; cubinet --cache E verify
  requested 1, already 0, compiled 1, failed 0, uncovered 0, <S> s
  checked 1, damaged 0, repaired 0
