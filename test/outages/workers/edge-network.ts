// The service of a host's network: whether a new connection to the server that could repair the host is accepted. Queries the
// kernel and that server, never Writ. Usage: edge-network.js ADDRESS PORT SOCKET
import { createServer } from 'node:http';
import { connect } from 'node:net';

const [address = '', port = '', socket = ''] = process.argv.slice(2);
const connectMs = 500;

function isReached(): Promise<boolean> {
  return new Promise((resolve) => {
    const asked = connect({ host: address, port: Number(port), timeout: connectMs });
    const end = (reached: boolean): void => {
      asked.destroy();
      resolve(reached);
    };
    asked.once('connect', () => end(true));
    asked.once('timeout', () => end(false));
    asked.once('error', () => end(false));
  });
}

createServer(async (_request, response) => {
  response.end((await isReached()) ? 'the server is reached' : 'cut off');
}).listen(socket);
