// SPDX-License-Identifier: MIT
// Calls over HTTP/2 at once, by node's own client: grpc_client.mjs URL, on stdin a list of
// {path, headers, body (base64), parts}, on stdout what came of each. `parts`: the body goes in so many pieces.
import { connect } from 'node:http2';
import { text } from 'node:stream/consumers';

const calls = JSON.parse(await text(process.stdin));
const session = connect(process.argv[2], { rejectUnauthorized: false });
const told = { closed: null };
session.on('error', e => { told.closed = String(e); });

const one = ({ path, headers, body = '', parts = 1, method = 'POST' }) => new Promise(done => {
  const answer = { headers: {}, trailers: {}, body: '' }, pieces = [], bytes = Buffer.from(body, 'base64');
  const stream = session.request({ ':method': method, ':path': path, 'content-type': 'application/grpc', te: 'trailers',
    ...headers });
  stream.on('response', h => { answer.headers = { ...h }; });
  stream.on('trailers', h => { answer.trailers = { ...h }; });
  stream.on('data', d => pieces.push(d));
  stream.on('error', e => { answer.error = String(e); });
  stream.on('close', () => done({ ...answer, body: Buffer.concat(pieces).toString('base64') }));
  const step = Math.max(1, Math.ceil(bytes.length / parts));
  for (let at = 0; at < bytes.length; at += step) stream.write(bytes.subarray(at, at + step));
  stream.end();
});
const answers = await Promise.all(calls.map(one));
session.close();
console.log(JSON.stringify({ ...told, answers }));
