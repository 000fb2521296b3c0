// Makes docs/errors.md from the compiled table of error codes (src/core/error-codes.ts). Run it after a build;
// with --stdout it prints the page instead of writing it.
import { writeFileSync } from 'node:fs';

const { errorCodes } = await import('../dist/src/core/error-codes.js');
const { errorPage } = await import('../dist/src/core/error-docs.js');
const { exitCodeOfKind } = await import('../dist/src/core/errors.js');

const intro = `# Error codes

<!-- Made by scripts/make-error-catalogue.js from src/core/error-codes.ts. Do not edit. -->

Every error of Writ has a code. Match on the code, never on the text of a message: texts may change, codes do not.
With \`--json\` an error is an object with \`code\`, \`kind\`, \`message\`, \`hint\`, \`docs\` and \`facts\`;
\`docs\` is the command that prints its page, without a network.

The kind says what has to happen next, and gives the exit code:

| kind | exit code | meaning |
|---|---|---|
| usage | ${exitCodeOfKind.usage} | the command line asks for something that cannot be done |
| config | ${exitCodeOfKind.config} | the configuration has to be fixed |
| failed | ${exitCodeOfKind.failed} | our fault or the world's: trying again may help |
| rejected | ${exitCodeOfKind.rejected} | a verdict on authentic bytes: the release has to be fixed |
| degraded | ${exitCodeOfKind.degraded} | the policy is active, but not proved everywhere |
| rolled-back | ${exitCodeOfKind['rolled-back']} | a loader, a worker or a probe refused the generation after the swap |
| blocked | ${exitCodeOfKind.blocked} | a person is needed |
| busy | ${exitCodeOfKind.busy} | another process is at work: try again in a moment |
| deferred | ${exitCodeOfKind.deferred} | not now |

`;

function section(code) {
  const { meaning, kind, exit, effect, hint } = errorPage(code);
  return `## ${code}

${meaning}

- Kind: \`${kind}\`, ${exit}
- Effect on the running policy: ${effect}
- What to do: ${hint}
`;
}

const page = intro + Object.keys(errorCodes).map(section).join('\n');
if (process.argv.includes('--stdout')) process.stdout.write(page);
else writeFileSync(new URL('../docs/errors.md', import.meta.url), page);
