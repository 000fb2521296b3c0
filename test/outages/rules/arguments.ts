// The arguments of `npm run outages`, and its help. Pure.
import { parseArgs } from 'node:util';

export interface OutageArguments {
  /** Names of the rows, in the order of the table. */
  readonly names: readonly string[];
  readonly isJson: boolean;
}

/** @returns the selected rows; the help, or the text of an error */
export function readArguments(
  args: readonly string[],
  all: readonly string[],
): OutageArguments | { readonly help: string } | { readonly mistake: string } {
  try {
    const { values } = parseArgs({
      args: [...args],
      options: {
        only: { type: 'string', multiple: true },
        json: { type: 'boolean' },
        help: { type: 'boolean', short: 'h' },
      },
    });
    if (values.help === true) return { help: helpText(all) };
    const only = values.only ?? [];
    const unknown = only.filter((name) => !all.includes(name));
    if (unknown.length > 0)
      return { mistake: `there is no outage ${unknown.join(', ')}; there are: ${all.join(', ')}` };
    const names = only.length === 0 ? all : all.filter((name) => only.includes(name));
    return { names, isJson: values.json === true };
  } catch (error) {
    return { mistake: error instanceof Error ? error.message : String(error) };
  }
}

function helpText(all: readonly string[]): string {
  return `Usage: npm run outages -- [--only NAME]... [--json]

Replays the mechanism of well-known outages: a real agent, a real server, and a small worker that has the fault.
Each row ends with what the workers themselves serve. Takes some minutes. Progress is on stderr, the table on stdout.

Options:
  --only NAME  replay this row alone; may be repeated
  --json       print one JSON object in place of the table
  --help       print this text

Rows: ${all.join(', ')}

Exit codes: 0 all rows ended as expected, 1 one did not, 2 wrong arguments. A row that this machine cannot replay is
"skipped", with the reason. With WRIT_TEST_REQUIRE_REAL=1 a skipped row is a failure.

Examples:
  npm run outages
  npm run outages -- --only crowdstrike
  npm run outages -- --only meta --only azure-front-door --json
`;
}
