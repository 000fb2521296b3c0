// Parses texts as configurations with fake drivers and defaults, for the tests of the parser.
import { mistakeLine } from '../../../../src/core/config/config-errors.js';
import { type ParsedConfig, parseConfig } from '../../../../src/core/config/parse-config.js';

const drivers = [
  {
    name: 'kresd',
    properties: { kresd: { type: 'string' }, command: { type: 'string' }, expect: { type: 'string' } },
    required: ['command', 'expect'],
  },
  { name: 'native', properties: { native: { type: 'string' } }, required: [] },
  {
    name: 'signal',
    properties: { signal: { enum: ['HUP'] }, pidFile: { type: 'string' } },
    required: ['pidFile'],
  },
  {
    name: 'supervisord',
    properties: { supervisord: { type: 'string' }, signal: { enum: ['HUP'] } },
    required: [],
  },
];

export function parse(text: string): ParsedConfig {
  return parseConfig(text, {
    drivers,
    validateCron: (expression) => (expression.split(' ').length === 5 ? undefined : 'it has not five fields'),
    defaults: { root: '/etc/writ/root.json', state: '/var/lib/writ', run: '/run/writ', hostId: 'host-1' },
  });
}

/** @returns the mistakes as lines of text; empty for a valid configuration */
export function mistakes(text: string): string[] {
  const parsed = parse(text);
  return parsed.ok ? [] : parsed.mistakes.map(mistakeLine);
}

/** The shortest valid configuration. */
export const minimal = `repository: https://policy.example.net/
bundles:
  - name: dns-edge
`;
