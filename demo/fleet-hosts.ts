// The hosts of part three: three agents, each with a worker, that tell a fleet server how they are. Two have the check that
// everybody has; the third has one more of its own. Owns their configuration; what is published is the story's.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { startWorker } from './access-host.js';
import { Unexpected } from './screen.js';
import { project, type Stage } from './stage.js';

export const hostNames = ['edge-1', 'edge-2', 'edge-3'] as const;
/** The host with a check of its own. */
export const strictHost = 'edge-3';
const ownSchema = 'no-new-rights.schema.json';

export interface FleetAddresses {
  readonly repositoryUrl: string;
  readonly fleetUrl: string;
  /** The file with the token for enrolment. */
  readonly tokenFile: string;
}

/** All three side by side. @returns when each has its policy and its worker runs */
export async function startFleetHosts(stage: Stage, addresses: FleetAddresses): Promise<void> {
  const [schema, text] = [ownSchema, schemaText()];
  writeFileSync(stage.path(schema), text);
  for (const name of hostNames) {
    writeFileSync(stage.path(configOf(name)), configurationText(stage, name, addresses));
  }
  stage.screen.command(['cat', configOf(strictHost), schema]);
  stage.screen.output(configurationText(stage, strictHost, addresses) + text);
  await Promise.all(
    hostNames.map(async (name) => {
      const agent = stage.startWrit(['agent', '--config', configOf(name)]);
      await agent.waitFor('stderr', /"msg":"cycle ended"/);
      await startWorker(stage, `${name}-worker`, runOf(name));
    }),
  );
}

/** The file that `--config` names. */
export function configOf(name: string): string {
  return `${name}.yaml`;
}

/**
 * Asks the fleet server until all three have told it that they have the bundle, for at most a minute.
 * @throws Unexpected
 */
export async function untilAllReport(fleetUrl: string, token: string, serial: number): Promise<void> {
  const url = `${fleetUrl}/v1/wait?bundle=access&channel=stable&serial=${serial}`;
  const deadlineMs = performance.now() + 60_000;
  for (;;) {
    const answer = await fetch(url, { headers: { authorization: `Bearer ${token}` } });
    const { of } = (await answer.json()) as { of?: number };
    if (of === hostNames.length) return;
    if (performance.now() > deadlineMs) throw new Unexpected(`${of} hosts have reported within a minute`);
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}

function runOf(name: string): string {
  return `${name}-run`;
}

function configurationText(
  stage: Stage,
  name: string,
  { repositoryUrl, fleetUrl, tokenFile }: FleetAddresses,
): string {
  const schemas = [
    ['policy.yaml is an access policy', join(project, 'bundles', 'access', 'policy.schema.json')],
    ...(name === strictHost ? [['editors get no new rights here', stage.path(ownSchema)]] : []),
  ];
  const checks = schemas.map(
    ([title, schema]) =>
      `      - name: ${title}\n        parse: ["policy.yaml"]\n        schema: ${schema}\n`,
  );
  return `repository: ${repositoryUrl}/
root: ${stage.path('repo', 'metadata', '1.root.json')}
state: ${stage.path(`${name}-state`)}
run: ${stage.path(runOf(name))}
host: { id: ${name}, labels: { site: demo } }
poll: { every: 1h }
fleet: { url: ${fleetUrl}, tokenFile: ${stage.path(tokenFile)}, detail: line }
bundles:
  - name: access
    checks:
${checks.join('')}workers:
  - name: access
    uses: [access]
    reset: { native: access, timeout: 5s }
`;
}

function schemaText(): string {
  const editor = { items: { enum: ['report.read', 'report.write'] } };
  return `${JSON.stringify({ properties: { roles: { properties: { editor } } } })}\n`;
}
