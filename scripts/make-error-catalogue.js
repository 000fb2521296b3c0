// Makes docs/errors.md from the compiled table of error codes (src/core/error-codes.ts). Run it after a build;
// with --stdout it prints the page instead of writing it.
import { writeFileSync } from 'node:fs';

const { errorCodes } = await import('../dist/src/core/error-codes.js');
const { exitCodeOfKind } = await import('../dist/src/core/errors.js');

/** What a person at 3 a.m. asks first: which policy answers now? */
const effectOfKind = {
  usage: 'None: nothing was begun.',
  config: 'None: nothing was begun. A running agent goes on with the configuration it has.',
  failed:
    'The active policy stays, untouched. Where the error came after the swap, the previous generation has been ' +
    'put back. The release is not remembered as bad: the next cycle tries it again.',
  rejected:
    'The active policy stays, untouched. The release is remembered as refused and is tried again later ' +
    '(`refusals.retry`), at boot, after a change of configuration, and by `writ pull --force`.',
  degraded:
    'The new generation is active; what is named here does not use it, or has not proved that it does.',
  'rolled-back':
    'The previous generation is active again (at a first activation: none), and every worker has been notified of it. ' +
    'The release is remembered as refused.',
  blocked: 'The active policy stays, untouched.',
  busy: 'None by this command: somebody else is at work.',
  deferred: 'The active policy stays, untouched. The release waits.',
};

/** Codes whose effect differs from that of their kind. */
const effectOfCode = {
  DELTA_MALFORMED: 'None: the whole archive is fetched in its place. The release is not remembered as bad.',
  LOADER_BROKEN:
    'The previous generation is active again (at a first activation: none). The release is not remembered as ' +
    'bad: the next cycle tries it again.',
  ACTIVATION_BLOCKED:
    'The last good policy stays active. Refresh, scrub and status go on; nothing is activated until the block ends.',
  RELEASE_HELD: 'The active policy stays, untouched, until a newer serial is published or the hold ends.',
  AGENT_UNREACHABLE: 'None by this command. Whether an agent runs is not known.',
  INTERRUPTED:
    'The active policy is the old or the new generation, whole. What was begun is finished or undone at the next start.',
  INTERNAL: 'Not known in general: the last line of the command and `writ status` say it.',
};

const intro = `# Error codes

<!-- Made by scripts/make-error-catalogue.js from src/core/error-codes.ts. Do not edit. -->

Every error of Writ has a code. Match on the code, never on the text of a message: texts may change, codes do not.
With \`--json\` an error is an object with \`code\`, \`kind\`, \`message\`, \`hint\` and \`facts\`.

The kind says what has to happen next, and gives the exit code:

| kind | exit code | meaning |
|---|---|---|
| usage | ${exitCodeOfKind.usage} | the command line asks for something that cannot be done |
| config | ${exitCodeOfKind.config} | the configuration has to be mended |
| failed | ${exitCodeOfKind.failed} | our fault or the world's: trying again may help |
| rejected | ${exitCodeOfKind.rejected} | a verdict on authentic bytes: the release has to be mended |
| degraded | ${exitCodeOfKind.degraded} | the policy is active, but not proved everywhere |
| rolled-back | ${exitCodeOfKind['rolled-back']} | a loader, a worker or a probe refused the generation behind the swap |
| blocked | ${exitCodeOfKind.blocked} | a person is needed |
| busy | ${exitCodeOfKind.busy} | somebody else is at work: try again in a moment |
| deferred | ${exitCodeOfKind.deferred} | not now |

`;

function section(code, { kind, meaning, hint }) {
  return `## ${code}

${meaning}

- Kind: \`${kind}\`, exit code ${exitCodeOfKind[kind]}
- Effect on the running policy: ${effectOfCode[code] ?? effectOfKind[kind]}
- What to do: ${hint}
`;
}

const page =
  intro +
  Object.entries(errorCodes)
    .map(([code, row]) => section(code, row))
    .join('\n');
if (process.argv.includes('--stdout')) process.stdout.write(page);
else writeFileSync(new URL('../docs/errors.md', import.meta.url), page);
