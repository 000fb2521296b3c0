// The configurations in the documents: the agent accepts the samples, and each command lists its accesses. Commands run in the
// sandbox: one that uses the network or a socket below /run must configure that, or it refuses a reader's first release.
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { parse } from 'yaml';
import { loadConfig } from '../../src/agent/config/load-config.js';
import { asGroup, asList } from '../../src/core/config/findings.js';
import { blocksOf } from '../kit/pages/page-commands.js';
import { projectRoot } from '../kit/sources/source-files.js';

const examples = 'docs/examples';

describe('the sample configurations', () => {
  for (const { name } of readdirSync(examples, { withFileTypes: true }).filter((one) => one.isDirectory())) {
    it(`are accepted by the agent without a warning: ${name}`, () => {
      const { config, warnings } = loadConfig(join(examples, name, 'agent.yaml'));
      assert.deepEqual(warnings, []);
      assert.equal(config.workers[0]?.uses[0], config.bundles[0]?.name);
    });
  }
});

const folders = [
  ...['.', 'docs', 'docs/daemons', 'docs/examples', 'packaging/debian/writ'],
  ...['access', 'dns-edge', 'limits'].map((name) => join(examples, name)),
];

function filesIn(folder: string): string[] {
  const names = readdirSync(join(projectRoot, folder)).filter((name) => /\.(md|yaml)$/.test(name));
  return names.map((name) => join(folder, name));
}

/** Removes the comment marks if every line is a comment, as in the file of the package. */
function configurationsOf(path: string): string[] {
  const text = readFileSync(join(projectRoot, path), 'utf8');
  if (path.endsWith('.md')) return blocksOf(text, 'yaml');
  if (/^[^#\n]/m.test(text)) return [text];
  return [text.split(/^#$/m).slice(1).join('').replace(/^# /gm, '')];
}

/** @returns every command that runs in a sandbox: checks, canaries, loaders and probes */
function commandsOf(data: unknown): Record<string, unknown>[] {
  const file = Array.isArray(data) ? {} : asGroup(data);
  const checks = asList(file['bundles']).flatMap((one) => asList(asGroup(one)['checks']));
  const hooks = [file, ...asList(file['workers'])].flatMap((one) =>
    ['canary', 'load', 'probe'].map((key) => asGroup(one)[key]),
  );
  return [...checks, ...hooks].map((one) => ({ ...asGroup(one) })).filter(({ run }) => run !== undefined);
}

const overNetwork =
  /\b(curl|wget|dig|drill|kdig|nc|ask-txt|ask-resolver)\b|(?:https?|smtp|tcp|udp):\/\/|@127\.0\.0\.1/;
const overSocket =
  /\/run\/|\b(clamdscan|birdc|fail2ban-client (?:ping|get)|varnishadm|psql|redis-cli|mysql)\b/;

function missingAccess({
  run,
  network,
  binds = [],
  writable = [],
  sandbox,
}: Record<string, unknown>): string[] {
  const text = asList(run).join(' ');
  if (sandbox === 'off' || sandbox === false || network === true) return [];
  if (overNetwork.test(text)) return [`without \`network: true\`: ${text}`];
  const shown = [...asList(binds), ...asList(writable)].length > 0;
  return overSocket.test(text) && !shown ? [`without \`binds\` or \`sandbox: off\`: ${text}`] : [];
}

const files = folders.flatMap(filesIn);

describe('the configurations in the documents', () => {
  it('give each command the network or the socket that it uses', () => {
    const found = files.flatMap((path) =>
      configurationsOf(path).flatMap((text) =>
        commandsOf(parse(text)).flatMap((hook) => missingAccess(hook).map((why) => `${path}: ${why}`)),
      ),
    );
    assert.deepEqual(found, []);
  });

  it('are found, with the commands of the file that a package installs', () => {
    const commands = files.flatMap((path) =>
      configurationsOf(path).flatMap((text) => commandsOf(parse(text))),
    );
    assert.ok(commands.length >= 25, `${commands.length} commands`);
    const [packaged = ''] = configurationsOf('packaging/debian/writ/agent.yaml');
    assert.equal(asList(asGroup(parse(packaged))['workers']).length, 1);
  });

  it('are reported if such a command lacks its access', () => {
    assert.equal(missingAccess({ run: ['curl', '-fsS', 'http://127.0.0.1/'] }).length, 1);
    assert.equal(missingAccess({ run: ['clamdscan', '--version'] }).length, 1);
    assert.deepEqual(missingAccess({ run: ['postconf', '-n'] }), []);
  });
});
