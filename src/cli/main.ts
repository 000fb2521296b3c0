#!/usr/bin/env node
// The program: hands the process to the command line, and ends it when everything that was written is out.

// A reload that is asked for while the program is being loaded must not end it; the configuration is read later anyway.
if (process.argv[2] === 'agent') process.on('SIGHUP', () => undefined);
const { runWrit } = await import('./run.js');
// An error of a stream without a listener ends the process, and a release may be half activated then. Renderers count what is lost.
for (const stream of [process.stdout, process.stderr]) stream.on('error', () => undefined);
const exitCode = await runWrit(process.argv.slice(2), process);
// What does not fit into the pipe at once is written later, and `process.exit` would cut it off.
const written = [process.stdout, process.stderr].map(
  (stream) => new Promise<void>((resolve) => stream.write('', () => resolve())),
);
await Promise.all(written);
process.exit(exitCode);
