// Postfix with a table of recipients as policy: mail to `stamp@corp.test` is refused with the version.
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import type { Daemon } from '../parts/daemon.js';
import { joinVersions, runInGroup } from '../parts/processes.js';
import { stampPlaceholder } from '../parts/zones.js';

function table(version: string, last = `last@corp.test REJECT ${stampPlaceholder}`): string {
  return `# ${version}\nstamp@corp.test REJECT ${stampPlaceholder}\n${last}\n`;
}

const dialogueMs = 8000;

/** @returns the version in the refusal of this recipient; undefined without one */
function refusalOf(port: number, recipient: string): Promise<string | undefined> {
  return new Promise((resolve) => {
    let text = '';
    const socket = connect(port, '127.0.0.1');
    const lines = ['EHLO test', 'MAIL FROM:<a@corp.test>', `RCPT TO:<${recipient}>`, 'QUIT'];
    socket.setTimeout(dialogueMs, () => socket.destroy());
    socket.on('data', (chunk: Buffer) => {
      text += chunk.toString();
      if (/^\d{3} .*\r\n$/m.test(chunk.toString())) socket.write(`${lines.shift() ?? 'QUIT'}\r\n`);
    });
    socket.on('error', () => undefined);
    socket.on('close', () => resolve(/\bRecipient address rejected: (v\d+)/.exec(text)?.[1]));
  });
}

export const postfix: Daemon = {
  name: 'postfix',
  packages: ['postfix', 'curl'],
  programs: ['postfix', 'master', 'curl'],
  process: 'daemon',
  stamps: ['recipients'],
  good: (version) => ({ recipients: table(version) }),
  bad: (version) => ({ recipients: table(version).replaceAll('REJECT', 'NONSENSE') }),
  half: (version) => ({ recipients: table(version, 'last@corp.test') }),
  empty: { never: 'it reads its tables only when a process of it starts' },
  open: ({ dir, policy, ports: [port] }) => {
    const [config, pidFile] = [join(dir, 'etc'), join(dir, 'queue/pid/master.pid')];
    return {
      places: [
        ['/var/lib/writ/policy', policy],
        ['/etc/postfix', config],
        ['smtp://127.0.0.1/', `smtp://127.0.0.1:${port}/`],
        ['/var/spool/postfix/pid/master.pid', pidFile],
      ],
      prepare: (own) => {
        for (const name of ['etc', 'queue', 'data']) mkdirSync(join(dir, name));
        const main = `compatibility_level = 3.6
queue_directory = ${dir}/queue
data_directory = ${dir}/data
maillog_file = ${dir}/log
maillog_file_prefixes = ${dir}
mynetworks = 127.0.0.0/8
mydestination = corp.test
local_recipient_maps =
smtpd_client_restrictions =
smtpd_peername_lookup = no
alias_maps =
inet_protocols = ipv4
inet_interfaces = 127.0.0.1
${own}`;
        writeFileSync(join(config, 'main.cf'), main);
        execFileSync('chown', ['postfix', join(dir, 'data')]);
        const services = readFileSync('/usr/share/postfix/master.cf.dist', 'utf8')
          .split('\n')
          .filter((line) =>
            /^(cleanup|rewrite|bounce|defer|trace|verify|anvil|proxymap|postlog|qmgr|pickup|tlsmgr)\b/.test(
              line,
            ),
          )
          .map((line) => line.replace(/^(\S+\s+\S+\s+\S+\s+\S+\s+)\S/, '$1n'));
        const smtp = `127.0.0.1:${port} inet n - n - - smtpd`;
        writeFileSync(join(config, 'master.cf'), `${[smtp, ...services].join('\n')}\n`);
        execFileSync('postfix', ['-c', config, 'check'], { stdio: 'ignore' });
      },
      ...runInGroup({
        argv: ['/usr/lib/postfix/sbin/master', '-c', config, '-d'],
        log: join(dir, 'out'),
        isUp: async () => existsSync(pidFile) && (await isListening(port)),
      }),
      ask: async () =>
        joinVersions([await refusalOf(port, 'stamp@corp.test'), await refusalOf(port, 'last@corp.test')]),
    };
  },
};

function isListening(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1');
    socket.once('data', () => {
      socket.destroy();
      resolve(true);
    });
    socket.once('error', () => resolve(false));
    socket.setTimeout(1000, () => {
      socket.destroy();
      resolve(false);
    });
  });
}
