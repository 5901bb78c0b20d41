// A host of MCP Apps in a browser: the official bridge, with tool calls passed on to the test.
import { AppBridge, PostMessageTransport } from "@modelcontextprotocol/ext-apps/app-bridge";

const seen = { sizes: [] };

async function show(html, capabilities, context) {
  const frame = document.createElement("iframe");
  frame.setAttribute("sandbox", "allow-scripts");
  document.body.append(frame);
  const bridge = new AppBridge(null, { name: "test-host", version: "1" }, capabilities, {
    hostContext: context,
  });
  bridge.onsizechange = ({ height }) => void seen.sizes.push(height);
  bridge.oncalltool = (params) => window.callTool(params);
  const initialized = new Promise((resolve) => {
    bridge.oninitialized = resolve;
  });
  await bridge.connect(new PostMessageTransport(frame.contentWindow, frame.contentWindow));
  frame.srcdoc = html;
  await initialized;
  window.bridge = bridge;
}

Object.assign(window, { show, seen });
